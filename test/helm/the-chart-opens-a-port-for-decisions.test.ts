import { expect, it } from 'vitest';
import { only, refusal, render } from '../fixtures/helm.ts';
import { configurationIn, type PodSpec } from '../fixtures/pod-files.ts';
import { describeChart } from './describe-chart.ts';

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

  it('needs the addresses of the proxies', () => {
    expect(refusal({ set: ['decisions.enabled=true'] })).toContain('decisions.trusted: list the addresses');
  });
});
