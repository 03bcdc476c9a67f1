import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { only, refusal, render } from '../fixtures/helm.ts';
import { configurationIn, type PodSpec } from '../fixtures/pod-files.ts';
import { describeChart } from './describe-chart.ts';

interface Container {
  readonly ports: readonly { readonly name: string }[];
}

describeChart('the port for decisions', () => {
  it('is closed by default', () => {
    const services = render().filter(({ kind }) => kind === 'Service');
    expect(services.map(({ metadata }) => metadata.name)).toEqual(['weir', 'weir-metrics']);
    expect(JSON.stringify(render())).not.toContain('9000');
  });

  it('is open in each pod, has a Service of its own, and trusts the given addresses', async () => {
    const manifests = render({ values: 'cluster-values.yaml' });
    const { template } = only(manifests, 'Deployment', /^weir$/).spec as { template: { spec: PodSpec } };
    expect(JSON.stringify(template.spec)).toContain(
      '{"name":"decisions","containerPort":9001,"protocol":"TCP"}',
    );
    expect(only(manifests, 'Service', /-decisions$/)).toMatchObject({
      metadata: { name: 'weir-decisions', annotations: { team: 'mesh' } },
      spec: { type: 'ClusterIP', ports: [{ port: 9000, targetPort: 'decisions' }] },
    });
    const { ingress } = only(manifests, 'NetworkPolicy').spec as { ingress: readonly object[] };
    expect(ingress).toContainEqual({
      ports: [{ port: 'decisions', protocol: 'TCP' }],
      from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'mesh' } } }],
    });
    const { settings } = await configurationIn(template.spec, manifests);
    expect(settings.decisions).toEqual({
      host: '0.0.0.0',
      port: 9001,
      trusted: ['10.0.0.0/8'],
      deniedStatus: 429,
      extAuthzPrefix: '/ext-authz',
    });
  });

  it('can be the only port besides the one for operators, which the probes use', async () => {
    const manifests = render({ values: 'decisions-values.yaml' });
    const services = manifests.filter(({ kind }) => kind === 'Service');
    expect(services.map(({ metadata }) => metadata.name)).toEqual(['weir-metrics', 'weir-decisions']);
    expect(only(manifests, 'Service', /-decisions$/)).toMatchObject({
      spec: { ports: [{ targetPort: 'decisions', appProtocol: 'https' }] },
    });
    const { template } = only(manifests, 'Deployment', /^weir$/).spec as { template: { spec: PodSpec } };
    const [{ ports, ...container } = { ports: [] }] = template.spec
      .containers as readonly unknown[] as readonly Container[];
    expect(ports.map(({ name }) => name)).toEqual(['metrics', 'decisions']);
    expect(container).toMatchObject({
      startupProbe: { httpGet: { port: 'metrics' } },
      livenessProbe: { httpGet: { port: 'metrics' } },
      readinessProbe: { httpGet: { port: 'metrics' } },
    });
    const { ingress } = only(manifests, 'NetworkPolicy').spec as { ingress: readonly object[] };
    expect(ingress).toEqual([
      { ports: [{ port: 'metrics', protocol: 'TCP' }] },
      { ports: [{ port: 'decisions', protocol: 'TCP' }] },
    ]);
    expect(only(manifests, 'Certificate').spec).toMatchObject({
      dnsNames: expect.arrayContaining(['weir-decisions.edge.svc']),
    });
    const { settings } = await configurationIn(template.spec, manifests);
    expect([settings.listen.port, settings.listen.tls]).toEqual(['off', undefined]);
    expect(settings.decisions.tls).toEqual({
      certFile: expect.stringMatching('/etc/weir/tls/tls.crt$'),
      keyFile: expect.stringMatching('/etc/weir/tls/tls.key$'),
      clientCaFile: expect.stringMatching('/etc/weir/client-ca/ca.crt$'),
    });
  });

  it('has its own certificate from `settings` alone, and leaves the certificates of the other ports', () => {
    const shared = ['tls.enabled=true', 'tls.existingSecret=weir-tls', 'tls.admin=true'];
    const open = ['decisions.enabled=true', 'decisions.trusted={10.0.0.0/8}'];
    const own = ['settings.decisions.tls.certFile=/own.crt', 'settings.decisions.tls.keyFile=/own.key'];
    const pairsOf = (...set: readonly string[]) => {
      const { data } = only(render({ set: [...shared, ...open, ...own, ...set] }), 'ConfigMap', /^weir$/);
      const { listen, admin, decisions } = load(data?.['weir.yaml'] ?? '') as Record<string, { tls: object }>;
      return [listen?.tls, admin?.tls, decisions?.tls];
    };
    const pair = { certFile: '/etc/weir/tls/tls.crt', keyFile: '/etc/weir/tls/tls.key' };
    const ownPair = { certFile: '/own.crt', keyFile: '/own.key' };
    const clientCaFile = '/etc/weir/client-ca/ca.crt';
    const clientCa = 'tls.clientCa.existingSecret=clients';
    expect(pairsOf()).toEqual([pair, pair, ownPair]);
    expect(pairsOf('tls.decisions=true')).toEqual([pair, pair, ownPair]);
    expect(pairsOf(clientCa)).toEqual([{ ...pair, clientCaFile }, pair, ownPair]);
    expect(pairsOf(clientCa, 'tls.decisions=true')).toEqual([
      { ...pair, clientCaFile },
      pair,
      { ...ownPair, clientCaFile },
    ]);
    const adminPair = ['settings.admin.tls.certFile=/own.crt', 'settings.admin.tls.keyFile=/own.key'];
    expect(pairsOf(...adminPair)).toEqual([pair, ownPair, ownPair]);
  });

  it.each([
    ['decisions.only needs decisions.enabled', ['decisions.only=true']],
    [
      'decisions.only leaves no port for clients',
      [
        'decisions.enabled=true',
        'decisions.trusted={10.0.0.0/8}',
        'decisions.only=true',
        'ingress.enabled=true',
        'ingress.hosts[0].host=a',
      ],
    ],
  ])('says %s', (message, set) => {
    expect(refusal({ set })).toContain(message);
  });

  it('needs the addresses of the proxies', () => {
    expect(refusal({ set: ['decisions.enabled=true'] })).toContain('decisions.trusted: list the addresses');
  });

  it("also serves Envoy's rate limit service, with rules that the pods follow", async () => {
    const set = ['decisions.enabled=true', 'decisions.trusted={10.0.0.0/8}', 'decisions.envoy.enabled=true'];
    expect(refusal({ set })).toContain('decisions.envoy.enabled needs decisions.envoy.rules');
    const manifests = render({ set: [...set, 'decisions.envoy.rules.edge\\.yaml.domain=edge'] });
    expect(only(manifests, 'Service', /-decisions$/)).toMatchObject({
      spec: { ports: [{ name: 'http' }, { name: 'grpc', port: 8081, appProtocol: 'kubernetes.io/h2c' }] },
    });
    const { template } = only(manifests, 'Deployment', /^weir$/).spec as { template: { spec: PodSpec } };
    const { settings, descriptors } = await configurationIn(template.spec, manifests);
    expect(settings.decisions.envoy).toMatchObject({ port: 8081, headers: 'draft' });
    expect([...descriptors.keys()]).toEqual(['edge']);
    expect(JSON.stringify(settings.kubernetes.watch)).toContain('weir-descriptors');
  });
});
