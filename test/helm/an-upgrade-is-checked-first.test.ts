import { expect, it } from 'vitest';
import { CASES, type Manifest, only, type Rendering, render } from '../fixtures/helm.ts';
import { configurationIn, type PodSpec } from '../fixtures/pod-files.ts';
import { describeChart } from './describe-chart.ts';

const jobIn = (manifests: readonly Manifest[]) => only(manifests, 'Job');
const podIn = (manifests: readonly Manifest[]) =>
  (jobIn(manifests).spec as { template: { spec: PodSpec } }).template.spec;

/** What `weir check` reads in the Job that precedes an upgrade. */
async function checked(rendering: Rendering) {
  const manifests = render(rendering);
  return configurationIn(podIn(manifests), manifests);
}

describeChart('the Job that runs before an installation or an upgrade', () => {
  it.each(CASES)('%s: has every file that weir check reads', async (values) => {
    await expect(checked({ values })).resolves.toBeDefined();
  });

  it('refuses a limit below the cost of an operation', async () => {
    const rendering = { values: 'standalone-values.yaml', set: ['limits.defaults.account-write=5'] };
    await expect(checked(rendering)).rejects.toThrow(/account-write: the limit 5 is below the cost 10/);
  });

  it.each(CASES)('%s: reads copies of what the upgrade brings, which are gone afterwards', (values) => {
    const manifests = render({ values });
    const hooks = manifests.filter(
      ({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'pre-install,pre-upgrade',
    );
    const own = manifests.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined);
    for (const { kind, data, metadata } of hooks.filter((one) => one.kind !== 'Job')) {
      expect(metadata.annotations?.['helm.sh/hook-delete-policy']).toContain('hook-failed');
      const original = own.find((one) => one.kind === kind && `${one.metadata.name}-check` === metadata.name);
      // cert-manager makes the certificate after the check, so the check does not need it.
      const isUnchecked = /^(tls|decisions)-values/.test(values) && original?.data !== undefined;
      expect(isUnchecked ? withoutTls(original.data) : original?.data).toEqual(data);
    }
    const names = new Set(own.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    for (const { configMap, secret } of podIn(manifests).volumes) {
      expect(names).not.toContain(`ConfigMap ${configMap?.name}`);
      expect(names).not.toContain(`Secret ${secret?.secretName}`);
    }
  });

  it('waits for the Secrets of variables whose absence weir check would not notice', () => {
    const keys = ['clientSecretKey=client', 'directoryTokenKey=token', 'name=identity'];
    const set = [
      'redis.url=redis://r,redis.existingSecret.name=r,redis.existingSecret.usernameKey=u,redis.existingSecret.passwordKey=p',
      'telemetry.endpoint=http://c:4318,telemetry.headersSecret.name=c',
      ...keys.map((one) => `identity.existingSecret.${one}`),
    ];
    const waitsFor = (podIn(render({ set })).containers[0]?.env ?? []).flatMap(({ name, valueFrom }) => {
      const { secretKeyRef } = (valueFrom ?? {}) as { secretKeyRef?: { optional?: boolean } };
      return secretKeyRef === undefined || secretKeyRef.optional === true ? [] : [name];
    });
    // docs/operating/upgrade.md lists them.
    expect(waitsFor.sort()).toEqual([
      'OTEL_EXPORTER_OTLP_HEADERS',
      'WEIR_IDENTITY_DIRECTORY_TOKEN',
      'WEIR_STORE_PASSWORD',
      'WEIR_STORE_USERNAME',
    ]);
  });

  it('runs only before upgrades if the values say so', () => {
    const hooks = render({ set: ['check.onInstall=false'] }).flatMap(
      ({ metadata }) => metadata.annotations?.['helm.sh/hook'] ?? [],
    );
    expect(hooks).toContain('pre-upgrade');
    expect(hooks).not.toContain('pre-install,pre-upgrade');
  });

  it('does not wait for an object that does not exist, where weir check names what is missing', async () => {
    const set = ['identity.static.existingSecret=mine', 'limits.overrideConfigMaps={theirs}'];
    const manifests = render({ set });
    const { volumes } = podIn(manifests);
    const sourceOf = (name: string) => volumes.find((one) => one.name.startsWith(name));
    expect(sourceOf('identities')?.secret).toMatchObject({ secretName: 'mine', optional: true });
    // An empty folder of overrides is valid.
    expect(sourceOf('overrides')?.configMap).toEqual({ name: 'theirs' });
    expect(sourceOf('limits')?.configMap).toEqual({ name: 'weir-limits-check' });
    const missing = /identities.yaml: does not exist: the setting identity.file refers to it/;
    await expect(configurationIn(podIn(manifests), manifests)).rejects.toThrow(missing);
    expect(JSON.stringify(only(manifests, 'Deployment').spec)).not.toContain('optional');
  });

  it('has no injected proxy, which would keep it from ending, unless the values ask for one', () => {
    const metadataOf = (...set: string[]) =>
      (jobIn(render({ set })).spec as { template: { metadata: object } }).template.metadata;
    expect(metadataOf()).toEqual({
      annotations: { 'linkerd.io/inject': 'disabled' },
      labels: {
        'app.kubernetes.io/name': 'weir',
        'app.kubernetes.io/instance': 'weir',
        'app.kubernetes.io/component': 'check',
        'sidecar.istio.io/inject': 'false',
      },
    });
    const istio = 'check.podLabels.sidecar\\.istio\\.io/inject=yes';
    expect(metadataOf(istio, 'check.podLabels.team=edge', 'check.podAnnotations.owner=edge')).toMatchObject({
      annotations: { 'linkerd.io/inject': 'disabled', owner: 'edge' },
      labels: { 'sidecar.istio.io/inject': 'yes', team: 'edge' },
    });
  });

  it('runs the init containers where one of them writes what the gateway reads, and no sidecar', () => {
    const initContainers = (volume: string) => {
      const sidecar = ['name=agent', 'image=agent', 'restartPolicy=Always', 'volumeMounts[0].name=files'];
      const set = [
        'extraVolumes[0].name=files',
        'extraVolumeMounts[0].name=files,extraVolumeMounts[0].mountPath=/etc/files',
        ...sidecar.map((one) => `initContainers[0].${one}`),
        'initContainers[1].name=prepare,initContainers[1].image=prepare',
        `initContainers[2].name=write,initContainers[2].image=write,initContainers[2].volumeMounts[0].name=${volume}`,
      ];
      const pod = podIn(render({ set })) as { initContainers?: readonly { name: string }[] };
      return pod.initContainers?.map(({ name }) => name);
    };
    expect(initContainers('files')).toEqual(['prepare', 'write']);
    expect(initContainers('other')).toBeUndefined();
  });

  it('has no access to the API, prints why it failed, and can be left out', () => {
    const manifests = render();
    expect(JSON.stringify(podIn(manifests))).not.toContain('serviceAccountToken');
    expect(jobIn(manifests).metadata.annotations?.['helm.sh/hook-output-log-policy']).toBe('hook-failed');
    const without = render({ set: ['check.enabled=false'] });
    expect(without.filter(({ metadata }) => metadata.name.endsWith('-check'))).toEqual([]);
  });
});

function withoutTls(data: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(data).map(([key, text]) => [
    key,
    text.replace(/^ {2}tls:\n(?: {4}.*\n)+/gm, ''),
  ]);
  return Object.fromEntries(entries);
}

describeChart('helm test', () => {
  const testPod = (rendering: Rendering) => JSON.stringify(only(render(rendering), 'Pod').spec);

  it('takes its token from a Secret, or from the identities of the values', () => {
    expect(testPod({ set: ['tests.existingSecret.name=mine'] })).toContain(
      '"secretKeyRef":{"name":"mine","key":"token"}',
    );
    const rendering = { values: 'standalone-values.yaml' };
    expect(testPod(rendering)).toContain('"secretKeyRef":{"name":"weir-test","key":"token"}');
    expect(only(render(rendering), 'Secret', /-test$/).data?.token).toBe(btoa('demo-token'));
    expect(testPod({})).not.toContain('TOKEN');
  });

  it('has the labels and annotations that keep a mesh from injecting a proxy', () => {
    const set = ['tests.podLabels.inject=no', 'tests.podAnnotations.inject=disabled'];
    const { metadata } = only(render({ set }), 'Pod');
    expect(metadata).toMatchObject({ labels: { inject: 'no' }, annotations: { inject: 'disabled' } });
  });
});
