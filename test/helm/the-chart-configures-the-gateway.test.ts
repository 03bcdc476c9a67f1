import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { unknownVariables } from '../../src/config/reader/environment.ts';
import { asNode } from '../../src/config/reader/schema-node.ts';
import { settingsSchema } from '../../src/config/settings/settings.ts';
import { digestOf } from '../../src/domain/token-digest.ts';
import type { Configuration } from '../../src/process/configuration.ts';
import { CASES, type Manifest, only, refusal, render, renderText } from '../fixtures/helm.ts';
import { limitInForce } from '../fixtures/limits.ts';
import { configurationIn, type PodSpec } from '../fixtures/pod-files.ts';
import { describeChart } from './describe-chart.ts';

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

/** What the gateway reads in the pod that the chart describes. */
const configurationOf = (manifests: readonly Manifest[]): Promise<Configuration> =>
  configurationIn(gatewayPod(manifests), manifests);

const deploymentOf = (manifests: readonly Manifest[]) =>
  JSON.stringify(only(manifests, 'Deployment', /^(weir|edge)$/));

const gatewayPod = (manifests: readonly Manifest[]) =>
  (only(manifests, 'Deployment', /^(weir|edge)$/).spec as { template: { spec: PodSpec } }).template.spec;

const envOf = (manifests: readonly Manifest[]) => gatewayPod(manifests).containers[0]?.env ?? [];

describeChart('the pod that the chart describes', () => {
  it.each(CASES)('%s: holds what the gateway can start with', async (values) => {
    await expect(configurationOf(render({ values }))).resolves.toBeDefined();
  });

  it('by default has no member of log that pods of 0.3.0 refuse, which may restart while it replaces them', () => {
    const config = only(render(), 'ConfigMap', /^weir$/).data as Record<string, string>;
    expect(config['weir.yaml']).toContain('log:');
    expect(config['weir.yaml']).not.toContain('fields');
  });

  it('is set as the values say', async () => {
    const { settings, limits, operations, identities } = await configurationOf(
      render({ values: 'standalone-values.yaml' }),
    );
    expect(settings).toMatchObject({
      baseUrl: 'https://api.example.com',
      upstream: { url: 'http://payments.internal:8080' },
      store: { kind: 'redis', deadlineMs: 40, onStoreFailure: 'reject' },
      operations: { unlisted: 'reject' },
      log: { level: 'debug', access: true },
      admin: { host: '0.0.0.0' },
    });
    const nowMs = Date.parse('2029-01-01');
    expect(limits.windowSeconds).toBe(2);
    expect(limitInForce(limits, 'account-read', 'acct_big', nowMs).limit).toBe(5_000_000);
    expect(limitInForce(limits, 'account-read', 'any', nowMs).limit).toBe(1_000_000);
    expect(limitInForce(limits, 'account-write', 'any', nowMs).limit).toBe(250);
    expect(limitInForce(limits, 'organization-read', 'org_free', nowMs).limit).toBeUndefined();
    expect(limitInForce(limits, 'account-write', 'acct_tried', nowMs).shadowLimit).toBe(100);
    expect(limitInForce(limits, 'person-write', 'person_1', nowMs).limit).toBe(900);
    expect(operations.map(({ id, cost }) => [id, cost])).toEqual([['createSession', 10]]);
    expect(identities.tokens.get(digestOf('demo-token'))?.id).toBe('person_1');
  });

  it.each([
    ['the usual number of pods', [], 2],
    ['replicaCount', ['replicaCount=7'], 7],
    ['no pods', ['replicaCount=0'], 1],
    ['the most pods of the autoscaler', ['autoscaling.enabled=true', 'autoscaling.maxReplicas=12'], 12],
    [
      'the most pods of KEDA',
      [
        'autoscaling.enabled=true',
        'autoscaling.keda.enabled=true',
        'autoscaling.keda.prometheusAddress=http://p',
      ],
      10,
    ],
    ['its own value', ['redis.expectedReplicas=5', 'replicaCount=7', 'autoscaling.enabled=true'], 5],
    [
      'replicaCount, also where settings ask for it',
      ['redis.onStoreFailure=serve', 'settings.store.onStoreFailure=share', 'replicaCount=7'],
      7,
    ],
  ])('shares the limits among its pods while Redis is away, by %s', async (_, set, expected) => {
    const share = ['redis.url=redis://redis:6379', 'redis.onStoreFailure=share', ...set];
    const { settings } = await configurationOf(render({ set: share }));
    expect(settings.store).toMatchObject({ onStoreFailure: 'share', expectedReplicas: expected });
  });

  it('looks API keys up at the platform, and their principals in the identities file', async () => {
    const { settings, identities } = await configurationOf(render({ values: 'api-keys-values.yaml' }));
    expect(settings.identity).toMatchObject({
      kind: 'api-keys',
      url: '/internal/api-keys/{digest}',
      timeoutMs: 1000,
    });
    expect(identities.principals.get('svc_1')?.account).toBe('acct_1');
  });

  it('has its Cluster, its certificates and additional override files', async () => {
    const { settings, limits } = await configurationOf(render({ values: 'cluster-values.yaml' }));
    expect(settings.store).toMatchObject({
      kind: 'cluster',
      nodes: ['rediss://redis-0.redis:6379', 'rediss://redis-1.redis:6379'],
      tls: { caFile: expect.stringMatching('/etc/weir/redis-tls/ca.crt$'), serverName: 'redis.internal' },
    });
    expect(limits.windowSeconds).toBe(3);
    expect([...limits.accounts.keys()]).toEqual(['acct_a', 'acct_n']);
    const sentinel = await configurationOf(render({ values: 'sentinel-values.yaml' }));
    expect(sentinel.settings.store).toMatchObject({ kind: 'sentinel', name: 'mymaster' });
  });

  it("has the platform's own prices where it stands in front of the platform", async () => {
    const { operations, settings } = await configurationOf(render({ values: 'demo-values.yaml' }));
    expect(settings.upstream.url).toBe('http://weir-platform:3000');
    expect(Math.max(...operations.map(({ cost }) => cost))).toBe(10);
  });

  it.each([
    ['image.repository=r.example.com/weir,image.tag=0.7', 'r.example.com/weir-platform:0.7'],
    [
      'image.registry=r.example.com,platform.image.repository=pay,platform.image.tag=0.8',
      'r.example.com/pay:0.8',
    ],
    [`platform.image.digest=${DIGEST}`, `weir-platform@${DIGEST}`],
  ])('runs the platform in an image of its own: %s', (set, image) => {
    const manifests = render({ values: 'demo-values.yaml', set: [set] });
    const { spec } = only(manifests, 'Deployment', /^weir-platform$/);
    expect(JSON.stringify(spec)).toContain(`"image":"${image}"`);
  });

  it('has its issuers, its proxies and its drain time', async () => {
    const { settings, identities } = await configurationOf(render({ values: 'jwt-values.yaml' }));
    expect(settings).toMatchObject({
      identity: { kind: 'jwt', audience: 'payments', directory: { kind: 'file' } },
      listen: { trustedProxies: ['10.0.0.0/8'], maxConnections: 20_000 },
      upstream: { routes: [{ prefix: '/v3/search' }], headersTimeoutMs: 30_000 },
      shutdown: { drainDelaySeconds: 20, graceSeconds: 40 },
    });
    expect(identities.accounts.get('acct_1')).toEqual({ organization: 'org_1' });
    const { settings: asked } = await configurationOf(render({ values: 'introspection-values.yaml' }));
    expect(asked.identity).toMatchObject({ kind: 'introspection', clientSecret: 'from-a-secret' });
  });
});

describeChart('secrets', () => {
  it.each(['cluster-values.yaml', 'secret-url-values.yaml', 'introspection-values.yaml'])(
    '%s: an existing Secret leaves none in the release',
    (values) => {
      const manifests = render({ values });
      expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([]);
      expect(
        envOf(manifests)
          .filter(({ name }) => /REDIS|STORE|IDENTITY/.test(name))
          .every(({ valueFrom }) => valueFrom !== undefined),
      ).toBe(true);
    },
  );

  it('a password in the Redis URL is stored only in a Secret', () => {
    const text = renderText({ values: 'standalone-values.yaml' });
    expect(text).not.toContain('hunter2');
    expect(text).toContain(btoa('redis://weir:hunter2@redis.internal:6379'));
  });
});

describeChart('the admin token', () => {
  const TOKEN = 'correct-horse-battery';
  const given = `admin.token=${TOKEN}`;
  const mounted = (...set: string[]) =>
    gatewayPod(render({ set })).volumes.find(({ name }) => name === 'admin-token')?.secret?.secretName;
  const fileOf = (...set: string[]) =>
    envOf(render({ set })).find(({ name }) => name === 'WEIR_ADMIN_TOKEN_FILE')?.value;

  it('is stored only in a Secret', () => {
    const text = renderText({ set: [given] });
    expect(text).not.toContain(TOKEN);
    expect(text).toContain(btoa(TOKEN));
    expect(mounted(given)).toBe('weir-admin');
  });

  it('may come from an existing Secret, which leaves none in the release', () => {
    const set = [given, 'admin.existingSecret.name=mine', 'admin.existingSecret.key=admin'];
    expect([mounted(...set), fileOf(...set)]).toEqual(['mine', '/etc/weir/admin/admin']);
    expect(renderText({ set })).not.toContain(btoa(TOKEN));
  });

  it('is absent by default', () => expect([mounted(), fileOf()]).toEqual([undefined, undefined]));

  it('reaches the gateway', async () => {
    const { settings } = await configurationOf(render({ set: [given] }));
    expect(settings.admin).toMatchObject({ tokenFile: expect.stringMatching('/etc/weir/admin/token$') });
  });

  it('restarts no pod when it changes, because the file is read for each request', () => {
    expect(deploymentOf(render({ set: [given] }))).toBe(deploymentOf(render({ set: [`${given}-2`] })));
  });
});

describeChart('TLS', () => {
  const probeSchemes = (manifests: readonly Manifest[]) =>
    [
      ...JSON.stringify(gatewayPod(manifests)).matchAll(
        /"path":"\/(?:livez|readyz)","port":"metrics"(?:,"scheme":"(\w+)")?/g,
      ),
    ].map(([, scheme]) => scheme);

  it('serves HTTPS on both ports, and the probes use it', async () => {
    const manifests = render({ values: 'tls-values.yaml' });
    const { settings } = await configurationOf(manifests);
    expect(settings.listen.tls).toEqual({
      certFile: expect.stringMatching('/etc/weir/tls/tls.crt$'),
      keyFile: expect.stringMatching('/etc/weir/tls/tls.key$'),
      clientCaFile: expect.stringMatching('/etc/weir/client-ca/ca.crt$'),
    });
    expect(settings.admin.tls).toMatchObject({ certFile: expect.stringMatching('tls.crt$') });
    expect(probeSchemes(manifests)).toEqual(['HTTPS', 'HTTPS', 'HTTPS']);
    const [port] = (only(manifests, 'Service', /^weir$/).spec as { ports: readonly object[] }).ports;
    expect(port).toMatchObject({ port: 443, targetPort: 'http', appProtocol: 'https' });
    expect(only(manifests, 'Certificate').spec).toMatchObject({
      secretName: 'weir-tls',
      issuerRef: { name: 'internal', kind: 'ClusterIssuer' },
      dnsNames: expect.arrayContaining(['weir.edge.svc', 'api.example.com']),
      duration: '2160h',
    });
    expect(only(manifests, 'ServiceMonitor').spec).toMatchObject({
      endpoints: [{ scheme: 'https', tlsConfig: { serverName: 'weir.edge.svc' } }],
    });
    expect(only(manifests, 'PodMonitor').spec).toMatchObject({
      podMetricsEndpoints: [{ scheme: 'https', tlsConfig: { insecureSkipVerify: true } }],
    });
  });

  it('cert-manager puts every Service for clients into the certificate', () => {
    const manifests = render({ values: 'tls-values.yaml', set: ['additionalServices.internal.port=443'] });
    const { dnsNames } = only(manifests, 'Certificate').spec as { dnsNames: readonly string[] };
    for (const name of ['weir.edge.svc', 'weir-internal.edge.svc', 'weir-internal.edge'])
      expect(dnsNames).toContain(name);
  });

  it('a check before an upgrade needs no Secret that cert-manager has yet to make', async () => {
    const pod = (set: readonly string[]) => {
      const job = only(render({ values: 'tls-values.yaml', set }), 'Job', /-check$/);
      return (job.spec as { template: { spec: PodSpec } }).template.spec;
    };
    const mounted = (set: readonly string[]) => pod(set).volumes.map(({ name }) => name);
    expect(mounted([])).not.toContain('tls');
    const manifests = render({ values: 'tls-values.yaml' });
    const { settings } = await configurationIn(pod([]), manifests);
    expect([settings.listen.tls, settings.admin.tls]).toEqual([undefined, undefined]);
    const existing = ['tls.certManager.enabled=false', 'tls.existingSecret=weir-tls'];
    expect(mounted(existing)).toContain('tls');
  });

  it('with an existing Secret makes no Certificate, and leaves the admin port as it is', async () => {
    const manifests = render({ set: ['tls.enabled=true', 'tls.existingSecret=weir-tls'] });
    const { settings } = await configurationOf(manifests);
    expect(settings.listen.tls).toMatchObject({ certFile: expect.stringMatching('tls.crt$') });
    expect(settings.admin.tls).toBeUndefined();
    expect(probeSchemes(manifests)).toEqual([undefined, undefined, undefined]);
    expect(manifests.filter(({ kind }) => kind === 'Certificate')).toEqual([]);
  });
});

describeChart('a change of values', () => {
  const deploymentWith = (...set: string[]) =>
    deploymentOf(render({ values: 'standalone-values.yaml', set }));

  it('restarts no pod where it is one of limits, operations or identities', () => {
    const before = deploymentWith();
    expect(deploymentWith('limits.accounts.acct_1.account-read=7000')).toBe(before);
    expect(deploymentWith('operations.openapi.info.title=other')).toBe(before);
    expect(deploymentWith('identity.static.tokens.other=person_1')).toBe(before);
  });

  it.each([
    'upstream.url=http://other',
    'redis.deadlineMs=41',
    'redis.url=redis://u:p@other',
    'log.access=false',
    'log.fields.deployment_environment=test',
    'settings.log.level=warn',
  ])('restarts the pods where it is the process setting %s', (set) =>
    expect(deploymentWith(set)).not.toBe(deploymentWith()),
  );
});

describeChart('values that are wrong', () => {
  it('further limits, plans, their ends and the days on which months begin are not wrong', () => {
    const values = [
      'identity.static.existingSecret=identities',
      'upstream.url=http://upstream',
      'limits.limits.account-minute.per=account',
      'limits.limits.account-minute.points=5',
      'limits.limits.account-minute.window=1m',
      'limits.plans.pro.account-minute=9',
      'limits.accounts.acct_1.plan=pro',
      'limits.accounts.acct_1.until=2030-01-31',
      'limits.limits.month.per=organization',
      'limits.limits.month.points=9000000000000000',
      'limits.limits.month.period=month',
      'limits.accounts.acct_2.periodStartsOn=3',
      'limits.organizations.org_1.account-minute=none',
      'limits.organizations.org_1.periodStartsOn=31',
      'limits.principals.person_1.periodStartsOn=1',
    ];
    expect(refusal({ set: values })).toBe('');
  });

  it.each([
    ['limits.defaults.acount-read=5', "at '/limits/defaults'", 'acount-read'],
    ['limits.defaults.account-read=none', "at '/limits/defaults/account-read'", 'want integer'],
    ['limits.accounts.a.account-read=x', "at '/limits/accounts/a/account-read'", 'want integer'],
    ['limits.organizations.o.organisation-read=5', "at '/limits/organizations/o'", 'organisation-read'],
    ['limits.organizations.o.periodStartsOn=32', "at '/limits/organizations/o/periodStartsOn'", 'maximum'],
    ['limits.plans.pro.acount-read=5', "at '/limits/plans/pro'", 'acount-read'],
    ['limits.windowSeconds=0', "at '/limits/windowSeconds'", 'minimum'],
    ['identity.kind=ldap', "at '/identity/kind'", 'static'],
    ['identity.static.principals.p.type=Robot', "at '/identity/static/principals/p", 'Robot'],
    ['identity.statics=x', "at '/identity'", 'statics'],
    ['redis.deadlineMs=soon', "at '/redis/deadlineMs'", 'want integer'],
    ['redis.urll=redis://x', "at '/redis'", 'urll'],
    ['redis.url=http://x', "at '/redis/url'", 'pattern'],
    ['upstream.url=ftp://x', "at '/upstream/url'", 'pattern'],
    ['upstream.uri=http://x', "at '/upstream'", 'uri'],
    ['settings.listen.prot=1', "at '/settings/listen'", 'prot'],
    ['identity.introspection.clientSecret=x', "at '/identity/introspection'", 'clientSecret'],
    ['server.maxConnection=1', "at '/server'", 'maxConnection'],
    ['admin.token=short', "at '/admin/token'", 'pattern'],
    ['replicaCounts=3', "at ''", 'replicaCounts'],
    ['resources.limits.memroy=1Gi', "at '/resources/limits'", 'memroy'],
    ['resources.limits.memory=512MB', "at '/resources/limits/memory'", 'pattern'],
    ['resizePolicy[0].resourceName=cpus', "at '/resizePolicy/0/resourceName'", "'memory'"],
    ['resources.request.cpu=1', "at '/resources'", 'request'],
    ['check.resources.limits.memry=1Gi', "at '/check/resources/limits'", 'memry'],
    ['telemetry.endpoint=collector', "at '/telemetry/endpoint'", 'pattern'],
    ['telemetry.env.OTLP_X=1', "at '/telemetry/env'", 'OTLP_X'],
    ['additionalServices.internal.typ=NodePort', "at '/additionalServices/internal'", 'typ'],
    ['metrics.serviceMonitor.interval=often', "at '/metrics/serviceMonitor/interval'", 'pattern'],
    ['resources.limits.memory=512m', "at '/resources/limits/memory'", 'pattern'],
    ['resources.requests.cpu=500', "at '/resources/requests/cpu'", 'exclusiveMaximum: got 500, want 100'],
    ['fullnameOverride=Weir', "at '/fullnameOverride'", 'pattern'],
    ['identity.static.existingSecret=My_Secret', "at '/identity/static/existingSecret'", 'pattern'],
    ['limits.key=folder/limits.yaml', "at '/limits/key'", 'pattern'],
    ['limits.overrideConfigMaps={a,a}', "at '/limits/overrideConfigMaps'", 'equal'],
    ['image.repository=weir:0.3.0', "at '/image/repository'", 'pattern'],
    ['image.repository=https://registry.example.com/weir', "at '/image/repository'", 'pattern'],
    ['ingress.hosts[0].host=https://api.example.com', "at '/ingress/hosts/0/host'", 'pattern'],
    ['ingress.hosts[0].paths[0].path=v3', "at '/ingress/hosts/0/paths/0/path'", 'pattern'],
    ['ingress.hosts[0].paths[0].pathType=prefix', "at '/ingress/hosts/0/paths/0/pathType'", "'Prefix'"],
    ['ingress.tls[0].secret=x', "at '/ingress/tls/0'", 'secret'],
    ['extraEnv[0].name=A,extraEnv[0].value=1', "at '/extraEnv/0/value'", 'want string'],
    ['livenessProbe.periodSecond=10', "at '/livenessProbe'", 'periodSecond'],
    ['podDisruptionBudget.maxUnavailable=half', "at '/podDisruptionBudget/maxUnavailable'", 'pattern'],
  ])('%s is refused, with the key named', (set, where, what) => {
    const why = refusal({ set: [set] });
    expect(why).toContain(where);
    if (what !== 'Robot') expect(why).toContain(what);
  });

  it('a value that may have several types is refused in one line', () => {
    expect(refusal({ set: ['replicaCount=three'] })).toContain(
      "'/replicaCount': got string, want null or integer",
    );
    expect(refusal({ set: ['log.level=warning'] })).toContain("must be one of 'fatal', 'error', 'warn'");
    expect(refusal({ set: ['replicaCount=three', 'log.level=warning'] })).not.toContain('anyOf');
  });

  it.each([
    ['tls.admin=true', 'tls.admin, because tls.enabled is false'],
    ['tls.clientCa.existingSecret=ca', 'tls.clientCa, because tls.enabled is false'],
    ['redis.tls.existingSecret=ca', 'redis.tls.existingSecret, because redis.tls.enabled is false'],
    ['redis.tls.enabled=true', 'redis.tls, because no Redis is set'],
    ['platform.enabled=true,upstream.url=http://api', 'upstream.url, because platform.enabled is true'],
    ['redis.expectedReplicas=4', 'redis.expectedReplicas, because redis.onStoreFailure is serve'],
    ['decisions.trusted={10.0.0.0/8}', 'decisions.trusted, because decisions.enabled is false'],
    [
      'tls.enabled=true,tls.existingSecret=s,tls.decisions=true',
      'tls.decisions, because decisions.enabled is false',
    ],
    [
      'tls.enabled=true,tls.existingSecret=s,decisions.enabled=true,decisions.only=true,decisions.trusted={10.0.0.0/8}',
      'tls, because decisions.only leaves no port for clients, and tls.decisions is false',
    ],
    [
      'admin.token=0123456789abcdef,admin.existingSecret.name=a',
      'admin.token, because of admin.existingSecret',
    ],
    [
      'identity.kind=jwt,identity.jwt.issuer=https://i,identity.jwt.audience=a,identity.static.existingSecret=mine',
      'identity.static, because identity.kind is jwt and has no directory of kind file',
    ],
    [
      'limits.existingConfigMap=mine,limits.windowSeconds=60',
      'limits.windowSeconds, because of limits.existingConfigMap',
    ],
    [
      'networkPolicy.enabled=true,networkPolicy.apiServer[0].ipBlock.cidr=10.0.0.1/32',
      'networkPolicy.apiServer, because networkPolicy.egress is empty',
    ],
    [
      'metrics.prometheusRule.disabled={WeirManyDenied}',
      'WeirManyDenied in metrics.prometheusRule.disabled, because no alert has this name',
    ],
    [
      'autoscaling.requestsPerSecond.averageValue=9',
      'autoscaling.requestsPerSecond.averageValue, because autoscaling.enabled is false',
    ],
    [
      'redis.url=redis://r,autoscaling.enabled=true,autoscaling.keda.enabled=true,autoscaling.keda.prometheusAddress=http://p,autoscaling.eventLoopLag.averageValue=20m',
      'autoscaling.eventLoopLag.averageValue, because autoscaling.keda.enabled is true',
    ],
    ['identity.jwt.issuer=https://i', 'identity.jwt, because identity.kind is static'],
    [
      'limits.existingConfigMap=mine,limits.accounts.a.account-read=5',
      'limits.accounts, because of limits.existingConfigMap',
    ],
    ['ingress.hosts[0].host=api.example.com', 'ingress.hosts, because ingress.enabled is false'],
    ['telemetry.sampleRatio=0.1', 'telemetry.sampleRatio, because telemetry.endpoint is empty'],
    [
      'redis.url=redis://r,autoscaling.enabled=true,resources.requests.cpu=null',
      'autoscaling.targetCPUUtilizationPercentage, because resources.requests.cpu is empty',
    ],
  ])('%s alone has no effect, and NOTES.txt says so', (set, why) => {
    const shown = 'extraObjects[0]=# {{ include "weir.withoutEffect" . | fromYamlArray | join "; " }}';
    const text = renderText({ set: [set, shown] });
    expect(text).toContain(`extra-objects.yaml\n# ${why}\n`);
    expect(readFileSync('helm/weir/templates/NOTES.txt', 'utf8')).toContain('include "weir.withoutEffect" .');
  });

  /** Helm prints NOTES.txt only when it installs, so the condition of a note is rendered as an object. */
  function expectNoted(condition: string, set: string, answer: string): void {
    const shown = `extraObjects[0]=# {{ include "${condition}" . | default "no" }}`;
    expect(renderText({ set: [set, shown] })).toContain(`extra-objects.yaml\n# ${answer}\n`);
    expect(readFileSync('helm/weir/templates/NOTES.txt', 'utf8')).toContain(`include "${condition}" .`);
  }

  it.each([
    ['log.level=info', 'yes'],
    ['upstream.url=http://api', 'no'],
    ['settings.upstream.url=http://api', 'no'],
    ['platform.enabled=true', 'no'],
    ['extraEnv[0].name=WEIR_UPSTREAM_URL,extraEnv[0].value=http://api', 'no'],
    ['extraContainers[0].name=api,extraContainers[0].image=api', 'no'],
    ['decisions.enabled=true,decisions.only=true,decisions.trusted={10.0.0.0/8}', 'no'],
  ])('%s: NOTES.txt says that there is no upstream: %s', (set, lacks) => {
    expectNoted('weir.lacksUpstream', set, lacks);
  });

  it.each([
    ['extraContainers[0].name=api', 'yes'],
    ['extraContainers[0].name=api,upstream.url=http://localhost:8080', 'yes'],
    ['extraContainers[0].name=api,extraContainers[0].lifecycle.preStop.sleep.seconds=30', 'no'],
    ['extraContainers[0].name=logs,initContainers[0].name=api,initContainers[0].restartPolicy=Always', 'no'],
    ['extraContainers[0].name=api,initContainers[0].name=prepare', 'yes'],
    ['extraContainers[0].name=logs,upstream.url=http://api', 'no'],
    ['extraContainers[0].name=logs,extraEnv[0].name=WEIR_UPSTREAM_URL,extraEnv[0].value=http://api', 'no'],
    ['log.level=info', 'no'],
  ])('%s: NOTES.txt says that the upstream ends before the gateway: %s', (set, ends) => {
    expectNoted('weir.upstreamEndsFirst', set, ends);
  });

  it.each([
    ['settings.journal.url=postgres://weir:pw@db/weir', 'journal.url: WEIR_JOURNAL_URL'],
    ['settings.journal.url=postgres://weir@db/weir', ''],
    ['settings.admin.token=0123456789abcdef', 'admin.token: WEIR_ADMIN_TOKEN'],
    ['redis.url=redis://r,settings.store.password=pw', 'store.password: WEIR_STORE_PASSWORD'],
    ['redis.url=redis://weir:pw@r,admin.token=0123456789abcdef', ''],
  ])('%s: NOTES.txt names the secrets that a ConfigMap has: %s', (set, names) => {
    const shown = 'extraObjects[0]=# {{ include "weir.plainSecrets" . | fromYamlArray | join "; " }}.';
    expect(renderText({ set: [set, shown] })).toContain(`extra-objects.yaml\n# ${names}.\n`);
    expect(readFileSync('helm/weir/templates/NOTES.txt', 'utf8')).toContain('include "weir.plainSecrets" .');
  });

  /** NOTES.txt, as a further object of one line: Helm prints it only when it installs. */
  function notes(set: string): string {
    const shown = 'extraObjects[0]=# {{ include "weir/templates/NOTES.txt" . | toRawJson }}';
    return renderText({ set: [set, shown] });
  }

  it.each([
    ['log.level=info', true],
    ['admin.token=0123456789abcdef', false],
    ['admin.existingSecret.name=mine', false],
    ['settings.admin.tokenFile=/etc/token', false],
    ['extraEnv[0].name=WEIR_ADMIN_TOKEN,extraEnv[0].value=0123456789abcdef', false],
    ['extraEnvFrom[0].secretRef.name=mine', false],
  ])('%s: NOTES.txt says that commands get a 403: %s', (set, isSaid) => {
    expect(notes(set).includes('WARNING: there is no admin token')).toBe(isSaid);
  });

  it.each([
    ['log.level=info', 'two seconds'],
    ['watch.enabled=false', '90 s'],
    ['networkPolicy.enabled=true,networkPolicy.egress[0].ports[0].port=6379', '90 s'],
    [
      'networkPolicy.enabled=true,networkPolicy.egress[0].ports[0].port=6379,networkPolicy.apiServer[0].ipBlock.cidr=10.0.0.1/32',
      'two seconds',
    ],
  ])('%s: NOTES.txt says that limits take effect within %s', (set, time) => {
    expect(notes(set)).toContain(`Raise a limit (takes effect within ${time}, without a restart):`);
  });

  it('NOTES.txt sends a client certificate where the port asks for one', () => {
    const tls = 'tls.enabled=true,tls.existingSecret=mine';
    expect(notes(tls)).toContain("curl -i -k -H 'Authorization");
    expect(notes(`${tls},tls.clientCa.existingSecret=ca`)).toContain(
      'curl -i -k --cert <certificate> --key <key> -H',
    );
  });

  it('NOTES.txt looks in the namespace of the objects', () => {
    const notes = readFileSync('helm/weir/templates/NOTES.txt', 'utf8');
    const namespaces = notes.split('\n').filter((line) => line.includes('kubectl'));
    expect(namespaces.length).toBeGreaterThan(2);
    for (const line of namespaces) expect(line).toContain('--namespace {{ include "weir.namespace" . }} ');
  });

  it.each([
    ['podDisruptionBudget.minAvailable=2', 'yes'],
    ['podDisruptionBudget.minAvailable=100%', 'yes'],
    ['podDisruptionBudget.maxUnavailable=0', 'yes'],
    ['podDisruptionBudget.minAvailable=2,autoscaling.enabled=true,autoscaling.minReplicas=3', 'no'],
    ['podDisruptionBudget.minAvailable=50%', 'no'],
    ['podDisruptionBudget.minAvailable=2,podDisruptionBudget.enabled=false', 'no'],
    ['podDisruptionBudget.minAvailable=1,replicaCount=1', 'no'],
    ['podDisruptionBudget.enabled=true', 'no'],
  ])('%s blocks drains, as NOTES.txt says: %s', (set, blocks) => {
    const shown = 'extraObjects[0]=# {{ include "weir.blocksDrains" . | default "no" }}';
    expect(renderText({ set: [`redis.url=redis://r,${set}`, shown] })).toContain(
      `extra-objects.yaml\n# ${blocks}\n`,
    );
    expect(readFileSync('helm/weir/templates/NOTES.txt', 'utf8')).toContain('include "weir.blocksDrains" .');
  });

  it.each([
    ['replicaCount=2', 'several pods must share their counts'],
    ['autoscaling.enabled=true', 'several pods must share their counts'],
    ['redis.mode=cluster,redis.url=redis://x', 'redis.mode cluster needs redis.nodes'],
    ['redis.nodes={redis://x}', 'redis.nodes belongs to redis.mode cluster'],
    [
      'redis.url=redis://r,autoscaling.enabled=true,autoscaling.minReplicas=12',
      'autoscaling.minReplicas (12) is above autoscaling.maxReplicas (10)',
    ],
    ['additionalServices.metrics.type=NodePort', 'additionalServices.metrics: the chart uses this name'],
    ['updateStrategy.rollingUpdate.maxSurge=0', 'set maxUnavailable to 1'],
    [
      'updateStrategy.rollingUpdate.maxSurge=0%,updateStrategy.rollingUpdate.maxUnavailable=0%',
      'set maxUnavailable to 1',
    ],
    ['settings.admin.host=127.0.0.1', 'settings.admin.host is 127.0.0.1, where no probe reaches the pods'],
    ['settings.admin.host=::1', 'settings.admin.host is ::1, where no probe reaches the pods'],
    ['telemetry.env.OTEL_BSP_MAX_QUEUE_SIZE=5', 'telemetry needs telemetry.endpoint'],
    ['ingress.enabled=true', 'ingress.enabled needs ingress.hosts'],
    ['tls.enabled=true', 'tls.enabled needs tls.existingSecret or tls.certManager.enabled'],
    ['tls.enabled=true,tls.certManager.enabled=true', 'needs tls.certManager.issuerRef.name'],
    ['gatewayAPI.httpRoute.enabled=true', 'needs gatewayAPI.httpRoute.parentRefs'],
    ['metrics.serviceMonitor.enabled=true,metrics.service.enabled=false', 'needs metrics.service.enabled'],
    ['identity.kind=jwt,identity.jwt.audience=a', 'identity.kind jwt needs identity.jwt.issuer'],
    [
      'identity.kind=introspection,identity.introspection.url=https://i',
      'needs identity.introspection.clientId',
    ],
    ['redis.mode=cluster,redis.nodes={redis://u:p@x}', 'must not contain passwords'],
    [
      'redis.mode=sentinel,redis.name=m,redis.sentinels={redis://u:p@x}',
      'set WEIR_STORE_SENTINELS by extraEnv',
    ],
    [
      'redis.url=redis://r,autoscaling.enabled=true,autoscaling.targetCPUUtilizationPercentage=null',
      'autoscaling.enabled needs a metric',
    ],
    [
      'redis.url=redis://r,podDisruptionBudget.maxUnavailable=null',
      'podDisruptionBudget needs maxUnavailable or minAvailable',
    ],
    ['settings.listen.port=off', 'set decisions.only'],
    ['fullnameOverride=7e10', '7e10 is not a name that a Service can have'],
    ['redis.url=redis://r,redis.dev.enabled=true', 'redis.url and redis.dev.enabled: set one of them'],
    [
      'redis.url=redis://r,redis.existingSecret.name=s,redis.existingSecret.urlKey=url',
      'redis.url and redis.existingSecret.urlKey: set one of them',
    ],
    [
      'redis.existingSecret.passwordKey=p',
      'redis.existingSecret.passwordKey needs redis.existingSecret.name',
    ],
    ['redis.existingSecret.name=s', 'redis.existingSecret.name needs the keys that the Secret has'],
    ['identity.existingSecret.clientSecretKey=c', 'needs identity.existingSecret.name'],
    ['podLabels.app\\.kubernetes\\.io/name=x', 'podLabels: the chart sets the label app.kubernetes.io/name'],
    [
      'check.podLabels.app\\.kubernetes\\.io/component=gateway',
      'check.podLabels: the chart sets the label app.kubernetes.io/component',
    ],
    [
      'metrics.podMonitor.enabled=true,metrics.podMonitor.interval=5s',
      'metrics.podMonitor.scrapeTimeout (10s) is longer than its interval (5s)',
    ],
  ])('%s contradicts itself, and helm says how', (set, why) => {
    expect(refusal({ set: [set] })).toContain(why);
  });
});

describeChart('the shape of the deployment', () => {
  const specOf = (kind: string, ...set: string[]) =>
    only(render({ set: ['redis.url=redis://r', ...set] }), kind, /^weir$/).spec as Record<string, unknown>;

  it('has no replicas where an autoscaler decides on them', () => {
    expect(specOf('Deployment')).toHaveProperty('replicas', 2);
    expect(specOf('Deployment', 'autoscaling.enabled=true')).not.toHaveProperty('replicas');
    expect(only(render(), 'Deployment').spec).toHaveProperty('replicas', 1);
  });

  it("scales by the CPU of the gateway's container, whatever other containers the pod has", () => {
    const { metrics } = specOf('HorizontalPodAutoscaler', 'autoscaling.enabled=true') as {
      metrics: readonly object[];
    };
    const target = { type: 'Utilization', averageUtilization: 70 };
    const containerResource = { container: 'weir', name: 'cpu', target };
    expect(metrics).toEqual([{ type: 'ContainerResource', containerResource }]);
    const { containers } = gatewayPod(render()) as unknown as { containers: readonly { name: string }[] };
    expect(containers[0]?.name).toBe('weir');
  });

  it.each(['weir', 'weir-'.padEnd(50, 'x')])('scales %s by the requests of its own pods', (name) => {
    const keda = ['keda.enabled=true', 'keda.prometheusAddress=http://p', 'enabled=true'];
    const set = [`fullnameOverride=${name}`, ...keda.map((one) => `autoscaling.${one}`)];
    const scaled = only(render({ set: ['redis.url=redis://r', ...set] }), 'ScaledObject');
    const [, pods = ''] = /pod=~\\"(.*?)\\"/.exec(JSON.stringify(scaled.spec)) ?? [];
    // As Prometheus compares: the whole label.
    const own = new RegExp(`^(?:${pods})$`);
    const podOf = (deployment: string) => `${`${deployment}-5d4f8c7b9x-`.slice(0, 58)}k2x9p`;
    expect(podOf(name)).toMatch(own);
    expect(podOf(`${name.slice(0, 40)}-internal`)).not.toMatch(own);
  });

  it("scales by the calls of Envoy's as well, which are no requests of the gateway", () => {
    const autoscaling = ['keda.enabled=true', 'keda.prometheusAddress=http://p', 'enabled=true'];
    const decisions = [
      'enabled=true',
      'trusted={10.0.0.0/8}',
      'envoy.enabled=true',
      'envoy.rules.a.domain=a',
    ];
    const set = [
      'redis.url=redis://r',
      ...autoscaling.map((one) => `autoscaling.${one}`),
      ...decisions.map((one) => `decisions.${one}`),
    ];
    const { triggers } = only(render({ set }), 'ScaledObject').spec as {
      triggers: readonly { metadata: { query: string } }[];
    };
    const pods = '{namespace="edge", pod=~"weir-[a-z0-9]+(-[a-z0-9]{5})?"}[1m]';
    expect(triggers[0]?.metadata.query).toBe(
      `sum(rate(weir_requests_total${pods}) or rate(weir_descriptor_decisions_total${pods}))`,
    );
  });

  it('has no rolling update where it recreates its pods, because Kubernetes refuses both', () => {
    const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
    expect(specOf('Deployment').strategy).toEqual({ type: 'RollingUpdate', rollingUpdate });
    const recreated = specOf('Deployment', 'updateStrategy.type=Recreate');
    expect(recreated.strategy).toEqual({ type: 'Recreate' });
  });

  it('spreads the pods of an upgrade without regard to the old ones', () => {
    const { topologySpreadConstraints } = gatewayPod(render()) as unknown as Record<string, unknown>;
    const own = { topologyKey: 'kubernetes.io/hostname', matchLabelKeys: ['pod-template-hash'] };
    expect(topologySpreadConstraints).toMatchObject([own]);
  });

  it('gives the drain its time from one value', () => {
    const text = JSON.stringify(specOf('Deployment', 'drainSeconds=90'));
    expect(text).toContain('"terminationGracePeriodSeconds":110');
    const settings = only(render({ set: ['drainSeconds=90'] }), 'ConfigMap', /^weir$/).data?.['weir.yaml'];
    expect(settings).toContain('drainDelaySeconds: 30\n  graceSeconds: 60');
    const longer = JSON.stringify(specOf('Deployment', 'settings.shutdown.graceSeconds=300'));
    expect(longer).toContain('"terminationGracePeriodSeconds":330');
    const sleeping = JSON.stringify(specOf('Deployment', 'lifecycle.preStop.sleep.seconds=25'));
    expect(sleeping).toContain('"terminationGracePeriodSeconds":75');
  });

  it('opens the ports of settings, and asks them as they are served', () => {
    const set = ['settings.listen.port=8081', 'settings.admin.port=9091', 'settings.admin.tls.certFile=/c'];
    const text = JSON.stringify(specOf('Deployment', ...set));
    expect(text).toContain('"name":"http","containerPort":8081');
    expect(text).toContain('"name":"metrics","containerPort":9091');
    expect(text).toContain('"path":"/livez","port":"metrics","scheme":"HTTPS"');
    const test = JSON.stringify(only(render({ set }), 'Pod').spec);
    expect(test).toContain('{"name":"METRICS_PORT","value":"9091"}');
  });

  it('serves all paths of an Ingress host without paths', () => {
    const spec = specOf('Ingress', 'ingress.enabled=true', 'ingress.hosts[0].host=api.example.com');
    expect(spec.rules).toMatchObject([
      { host: 'api.example.com', http: { paths: [{ path: '/', pathType: 'Prefix' }] } },
    ]);
  });

  it('has further Services for the same port, with settings of their own', () => {
    const set = [
      'additionalServices.internal.type=LoadBalancer',
      'additionalServices.internal.port=8080',
      'additionalServices.internal.appProtocol=kubernetes.io/ws',
    ];
    const { spec } = only(render({ set }), 'Service', /^weir-internal$/);
    expect(spec).toMatchObject({
      type: 'LoadBalancer',
      ports: [{ port: 8080, targetPort: 'http', appProtocol: 'kubernetes.io/ws' }],
      selector: specOf('Service').selector,
    });
    const { spec: metrics } = only(render(), 'Service', /^weir-metrics$/);
    expect(metrics).toMatchObject({ ports: [{ appProtocol: 'http' }] });
  });

  it('can have a user namespace, and containers that are resized in place', () => {
    const text = JSON.stringify(specOf('Deployment', 'hostUsers=false', 'resizePolicy[0].resourceName=cpu'));
    expect(text).toContain('"hostUsers":false');
    expect(text).toContain('"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]');
    expect(JSON.stringify(specOf('Deployment'))).not.toMatch(/hostUsers|resizePolicy/);
  });

  it('listens at IPv6 addresses too where listenAddress says so', async () => {
    const ports = ['decisions.enabled=true', 'decisions.trusted={10.0.0.0/8}', 'platform.enabled=true'];
    const manifests = render({ set: ['listenAddress=::', ...ports] });
    const { settings } = await configurationOf(manifests);
    expect([settings.listen.host, settings.admin.host, settings.decisions?.host]).toEqual(['::', '::', '::']);
    expect(JSON.stringify(only(manifests, 'Deployment', /platform/))).toContain('"args":["--host","::"]');
    expect(refusal({ set: ['listenAddress=10.0.0.1'] })).toContain('listenAddress');
  });

  it('sends traces and metrics to a collector, with the name of the pod', () => {
    const env = (...set: string[]) => {
      const known = envOf(render({ set })).filter(({ name }) => name.startsWith('OTEL_'));
      return Object.fromEntries(known.map(({ name, value, valueFrom }) => [name, value ?? valueFrom]));
    };
    expect(env()).toEqual({});
    const endpoint = 'telemetry.endpoint=http://collector:4318';
    expect(env(endpoint)).toEqual({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_K8S_POD_NAME: { fieldRef: { fieldPath: 'metadata.name' } },
      OTEL_RESOURCE_ATTRIBUTES:
        'k8s.namespace.name=edge,k8s.deployment.name=weir,k8s.pod.name=$(OTEL_K8S_POD_NAME)',
    });
    const further = [
      'metrics=false',
      'sampleRatio=0.01',
      'headersSecret.name=otlp',
      'env.OTEL_BSP_SCHEDULE_DELAY=9',
    ];
    expect(env(endpoint, ...further.map((one) => `telemetry.${one}`))).toMatchObject({
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
      OTEL_EXPORTER_OTLP_HEADERS: { secretKeyRef: { name: 'otlp', key: 'headers' } },
      OTEL_BSP_SCHEDULE_DELAY: '9',
    });
  });

  it.each(CASES)('%s: each variable with the prefix of the settings is a setting', (values) => {
    const variables = envOf(render({ values, set: ['telemetry.endpoint=http://collector:4318'] }));
    const env = Object.fromEntries(variables.map(({ name }) => [name, 'set']));
    expect(unknownVariables(asNode(settingsSchema), env)).toEqual([]);
  });

  it('keeps a pod up through a voluntary disruption, once there is more than one', () => {
    expect(specOf('PodDisruptionBudget')).toMatchObject({ maxUnavailable: 1 });
    expect(render().some(({ kind }) => kind === 'PodDisruptionBudget')).toBe(false);
  });
});
