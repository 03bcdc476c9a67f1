import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { type Manifest, only, type Rendering, render } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

interface Watched {
  readonly kind: string;
  readonly name: string;
  readonly folder: string;
}

interface Pod {
  readonly volumes: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
  }[];
  readonly containers: readonly {
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }[];
}

function watchedIn(manifests: readonly Manifest[]): readonly Watched[] {
  const { data } = only(manifests, 'ConfigMap', /^(weir|edge)$/);
  const settings = load(data?.['weir.yaml'] ?? '') as { kubernetes?: { watch: readonly Watched[] } };
  return settings.kubernetes?.watch ?? [];
}

const podIn = (manifests: readonly Manifest[]) =>
  (only(manifests, 'Deployment', /^(weir|edge)$/).spec as { template: { spec: Pod } }).template.spec;

/** What is mounted at a folder, as the name of the volume's object. */
function mountedAt(pod: Pod, folder: string): string | undefined {
  const mount = pod.containers[0]?.volumeMounts.find(({ mountPath }) => mountPath === folder);
  const volume = pod.volumes.find(({ name }) => name === mount?.name);
  return volume?.configMap?.name ?? volume?.secret?.secretName;
}

const namesOf = (rendering: Rendering) => watchedIn(render(rendering)).map(({ name }) => name);

describeChart('what a pod watches', () => {
  it('is its limits and operations, and the identities only where a value says so', () => {
    expect(namesOf({})).toEqual(['weir-limits', 'weir-operations']);
    expect(namesOf({ set: ['watch.identities=true'] })).toContain('weir-identities');
    expect(namesOf({ set: ['watch.enabled=false'] })).toEqual([]);
  });

  it('is each ConfigMap of overrides, and every ConfigMap that is not of the release', () => {
    expect(namesOf({ values: 'cluster-values.yaml' })).toEqual([
      'weir-limits-by-gitops',
      'payments-openapi',
      'overrides-a-to-m',
      'overrides-n-to-z',
      'weir-identities',
    ]);
  });

  it.each(['defaults', 'cluster-values.yaml', 'demo-values.yaml'])(
    '%s: is mounted where it says',
    (values) => {
      const manifests = render({ values });
      const watched = watchedIn(manifests);
      expect(watched.length).toBeGreaterThan(0);
      for (const { name, folder } of watched) expect(mountedAt(podIn(manifests), folder)).toBe(name);
    },
  );

  it.each(['defaults', 'cluster-values.yaml'])('%s: is all that its Role lets it read', (values) => {
    const manifests = render({ values });
    const { rules } = only(manifests, 'Role') as unknown as { rules: readonly Record<string, string[]>[] };
    const allowed = rules.flatMap(({ resources, resourceNames = [], verbs }) => {
      expect(verbs).toEqual(['get', 'watch']);
      return resourceNames.map((name) => `${resources} ${name}`);
    });
    const watched = watchedIn(manifests).map(({ kind, name }) => `${kind.toLowerCase()}s ${name}`);
    expect(allowed.sort()).toEqual([...watched].sort());
  });

  it('needs neither Role nor token where it watches nothing', () => {
    const manifests = render({ set: ['watch.enabled=false'] });
    expect(manifests.filter(({ kind }) => kind.startsWith('Role'))).toEqual([]);
    expect(JSON.stringify(podIn(manifests))).not.toContain('serviceAccountToken');
    const withoutRole = render({ set: ['rbac.create=false'] });
    expect(withoutRole.filter(({ kind }) => kind.startsWith('Role'))).toEqual([]);
    expect(watchedIn(withoutRole)).toHaveLength(2);
  });
});
