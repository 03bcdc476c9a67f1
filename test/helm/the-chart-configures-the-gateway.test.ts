import { expect, it } from 'vitest';
import { parseIdentities } from '../../src/config/identities.ts';
import { limitInForce } from '../../src/config/limits.ts';
import { parseLimits } from '../../src/config/limits-parse.ts';
import { parseOperations } from '../../src/config/openapi.ts';
import { parse } from '../../src/config/reader/parse.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { CASES, type Manifest, only, refusal, render, renderText } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

function settingsOf(manifests: readonly Manifest[], env: Readonly<Record<string, string>> = {}) {
  const text = only(
    manifests.filter(({ data }) => data?.['weir.yaml'] !== undefined),
    'ConfigMap',
  ).data?.['weir.yaml'];
  return parse(settingsSchema, text ?? '', 'weir.yaml', env).value;
}

const deploymentOf = (manifests: readonly Manifest[]) => JSON.stringify(only(manifests, 'Deployment'));

interface GatewayPod {
  readonly containers: readonly { readonly env: readonly { name: string; valueFrom?: unknown }[] }[];
}

const envOf = (manifests: readonly Manifest[]) =>
  (only(manifests, 'Deployment').spec as { template: { spec: GatewayPod } }).template.spec.containers[0]
    ?.env ?? [];

describeChart('the files that the chart writes', () => {
  it.each(CASES)('%s: are what the gateway reads', (values) => {
    const manifests = render({ values });
    // The address comes from a Secret where the values name one.
    const hasUrl = renderText({ values }).includes('name: WEIR_REDIS_URL');
    settingsOf(manifests, hasUrl ? { WEIR_REDIS_URL: 'redis://from-a-secret' } : {});
    for (const { data = {}, kind } of manifests) {
      if (data['limits.yaml'] !== undefined) parseLimits(data['limits.yaml'], 'limits.yaml');
      if (data['openapi.yaml'] !== undefined) parseOperations(data['openapi.yaml'], 'openapi.yaml');
      const identities = data['identities.yaml'];
      if (kind === 'Secret' && identities !== undefined) parseIdentities(atob(identities), 'identities.yaml');
    }
  });

  it('hold what the values say', () => {
    const manifests = render({ values: 'standalone-values.yaml' });
    const settings = settingsOf(manifests, { WEIR_REDIS_URL: 'redis://from-a-secret' });
    expect(settings).toMatchObject({
      baseUrl: 'https://api.example.com',
      upstream: { url: 'http://payments.internal:8080' },
      store: { kind: 'redis', deadlineMs: 40, onStoreFailure: 'reject' },
      operations: { unlisted: 'reject' },
      log: { level: 'debug', access: true },
      admin: { host: '0.0.0.0' },
    });
    const text = only(manifests, 'ConfigMap', /limits$/).data?.['limits.yaml'] ?? '';
    const limits = parseLimits(text, 'limits.yaml');
    const nowMs = Date.parse('2029-01-01');
    expect(limits.windowSeconds).toBe(2);
    expect(limitInForce(limits, 'account-read', 'acct_big', nowMs).limit).toBe(5_000_000);
    expect(limitInForce(limits, 'account-read', 'any', nowMs).limit).toBe(1_000_000);
    expect(limitInForce(limits, 'account-write', 'any', nowMs).limit).toBe(250);
    expect(limitInForce(limits, 'organization-read', 'org_free', nowMs).limit).toBeUndefined();
    expect(limitInForce(limits, 'account-write', 'acct_tried', nowMs).shadowLimit).toBe(100);
  });

  it('name the Cluster, its certificates and further files of overrides', () => {
    const settings = settingsOf(render({ values: 'cluster-values.yaml' }));
    expect(settings.store).toMatchObject({
      kind: 'cluster',
      nodes: ['rediss://redis-0.redis:6379', 'rediss://redis-1.redis:6379'],
      tls: { caFile: '/etc/weir/redis-tls/ca.crt', serverName: 'redis.internal' },
    });
    expect(settings.limits.overrides).toEqual([
      '/etc/weir/overrides/overrides-a-to-m',
      '/etc/weir/overrides/overrides-n-to-z',
    ]);
    const sentinel = settingsOf(render({ values: 'sentinel-values.yaml' }));
    expect(sentinel.store).toMatchObject({ kind: 'sentinel', name: 'mymaster' });
  });
});

describeChart('secrets', () => {
  it.each(['cluster-values.yaml', 'secret-url-values.yaml'])(
    '%s: an existing Secret leaves none in the release',
    (values) => {
      const manifests = render({ values });
      expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([]);
      expect(
        envOf(manifests)
          .filter(({ name }) => /REDIS|STORE/.test(name))
          .every(({ valueFrom }) => valueFrom !== undefined),
      ).toBe(true);
    },
  );

  it('a password in the address of the Redis goes to a Secret and nowhere else', () => {
    const text = renderText({ values: 'standalone-values.yaml' });
    expect(text).not.toContain('hunter2');
    expect(text).toContain(btoa('redis://weir:hunter2@redis.internal:6379'));
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
    'settings.log.level=warn',
  ])('restarts the pods where it is the process setting %s', (set) =>
    expect(deploymentWith(set)).not.toBe(deploymentWith()),
  );
});

describeChart('values that are wrong', () => {
  it.each([
    ['limits.defaults.acount-read=5', "at '/limits/defaults'", 'acount-read'],
    ['limits.defaults.account-read=none', "at '/limits/defaults/account-read'", 'want integer'],
    ['limits.accounts.a.account-read=x', "at '/limits/accounts/a/account-read'", 'want integer'],
    ['limits.organizations.o.organisation-read=5', "at '/limits/organizations/o'", 'organisation-read'],
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
    ['replicaCounts=3', "at ''", 'replicaCounts'],
    ['metrics.serviceMonitor.interval=often', "at '/metrics/serviceMonitor/interval'", 'pattern'],
  ])('%s is refused, with the key named', (set, where, what) => {
    const why = refusal({ set: [set] });
    expect(why).toContain(where);
    if (what !== 'Robot') expect(why).toContain(what);
  });

  it.each([
    ['replicaCount=2', 'several pods must share their counts'],
    ['autoscaling.enabled=true', 'several pods must share their counts'],
    ['redis.mode=cluster,redis.url=redis://x', 'redis.mode cluster needs redis.nodes'],
    ['redis.nodes={redis://x}', 'redis.nodes belongs to redis.mode cluster'],
    ['redis.mode=cluster,redis.nodes={redis://u:p@x}', 'must not hold passwords'],
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

  it('gives the drain its time from one value', () => {
    const text = JSON.stringify(specOf('Deployment', 'drainSeconds=90'));
    expect(text).toContain('"terminationGracePeriodSeconds":95');
    expect(text).toContain('setTimeout(() => {}, 30000)');
  });

  it('keeps a pod up through a voluntary disruption, once there is more than one', () => {
    expect(specOf('PodDisruptionBudget')).toMatchObject({ maxUnavailable: 1 });
    expect(render().some(({ kind }) => kind === 'PodDisruptionBudget')).toBe(false);
  });
});
