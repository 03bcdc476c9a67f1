import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CASES, type Manifest, render, renderText } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

describeChart('the chart', () => {
  it('passes helm lint', () => {
    const { status, stdout } = spawnSync('helm', ['lint', '--strict', 'helm/weir'], { encoding: 'utf8' });
    expect(stdout).toContain('1 chart(s) linted, 0 chart(s) failed');
    expect(status).toBe(0);
  });

  it.each(CASES)('%s: every manifest is valid for Kubernetes, with no unknown key', (values) => {
    const schemas = '{{.ResourceKind}}{{.KindSuffix}}.json';
    const location = `test/helm/schemas/${schemas}`;
    const args = ['-strict', '-summary', '-output', 'json', '-schema-location', location];
    const { stdout } = spawnSync('kubeconform', args, { input: renderText({ values }), encoding: 'utf8' });
    // kubeconform lists what is not valid; what it has no schema for counts as an error. No manifest is skipped.
    expect(JSON.parse(stdout)).toEqual({
      resources: [],
      summary: { valid: render({ values }).length, invalid: 0, errors: 0, skipped: 0 },
    });
  });

  it.each([
    ['automountServiceAccountToken', 'automountServiceAcountToken'],
    ['replicas: 1', 'replicas: one'],
    ['kind: Service\n', 'kind: Servise\n'],
  ])('the schemas refuse what is wrong: %s as %s', (right, wrong) => {
    const text = renderText();
    expect(text).toContain(right);
    const args = ['-strict', '-schema-location', 'test/helm/schemas/{{.ResourceKind}}{{.KindSuffix}}.json'];
    const input = text.replace(right, wrong);
    expect(() => execFileSync('kubeconform', args, { input, stdio: 'pipe' })).toThrow();
  });

  it('names that look like numbers stay text', () => {
    const set = [
      'redis.url=redis://r,serviceAccount.create=false,networkPolicy.enabled=true',
      'metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true',
    ];
    const strings = [
      'nameOverride=7e10',
      'namespaceOverride=77',
      'fullnameOverride=true',
      'limits.existingConfigMap=6',
    ];
    strings.push('serviceAccount.name=5', 'priorityClassName=8', 'identity.static.existingSecret=9');
    const text = JSON.stringify(render({ set, strings }));
    const names = /"(?:name|namespace|app\.kubernetes\.io\/\w+|\w+Name)":(?!")[^,}]*/g;
    expect(text.match(names)).toBeNull();
  });

  it.each(CASES)('%s: the same values give the same bytes', (values) => {
    expect(renderText({ values })).toBe(renderText({ values }));
  });

  it('a published chart runs the image that was published with it, unless the values name another', () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-chart-'));
    execFileSync('helm', ['package', '--destination', folder, 'helm/weir']);
    const [name = ''] = readdirSync(folder);
    const image = `weir@sha256:${'0123456789abcdef'.repeat(4)}`;
    const pinned = join(folder, name);
    execFileSync('bash', ['.ci/pin-chart', pinned, image], { stdio: 'pipe' });
    const imageOf = (set: string) => {
      const text = execFileSync('helm', ['template', 'weir', pinned, '--set', set], { encoding: 'utf8' });
      return /^ +image: (\S+)$/m.exec(text)?.[1];
    };
    expect(imageOf('image.pullPolicy=Always')).toBe(image);
    expect(imageOf('image.tag=0.2.0')).toBe('weir:0.2.0');
    expect(imageOf('image.repository=mine')).toMatch(/^mine:/);
  });

  it('every kind that has a schema is rendered somewhere', () => {
    const kinds = new Set(
      CASES.flatMap((values) => render({ values })).map(({ kind }) => kind.toLowerCase()),
    );
    const schemas = readdirSync('test/helm/schemas').filter((file) => file.endsWith('.json'));
    expect([...kinds].sort()).toEqual(schemas.map((file) => file.split('-')[0]).sort());
  });

  it.each(CASES)('%s: every pod meets the restricted Pod Security profile', (values) => {
    const pods = render({ values })
      .filter(({ kind }) => ['Deployment', 'Job', 'Pod'].includes(kind))
      .map(podOf);
    expect(pods.length).toBeGreaterThan(0);
    for (const pod of pods) expectRestricted(pod);
  });
});

function expectRestricted(pod: Pod): void {
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(pod.securityContext.runAsUser).toBeGreaterThan(0);
  expect([pod.hostNetwork, pod.hostPID, pod.hostIPC]).toEqual([undefined, undefined, undefined]);
  expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  expect(JSON.stringify(pod.volumes ?? [])).not.toContain('hostPath');
  for (const container of pod.containers.filter(isOurs)) {
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.securityContext.privileged).not.toBe(true);
    // Nor would a file mounted by subPath follow its ConfigMap.
    expect(JSON.stringify(container)).not.toMatch(/"(hostPort|subPath)"/);
  }
}

interface Container {
  readonly name: string;
  readonly securityContext: Readonly<Record<string, unknown>>;
}

interface Pod {
  readonly securityContext: { readonly runAsUser: number };
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly volumes?: readonly object[];
  readonly containers: readonly Container[];
}

function podOf({ kind, spec }: Manifest): Pod {
  return kind === 'Pod' ? (spec as Pod) : (spec as { template: { spec: Pod } }).template.spec;
}

/** A user's own sidecar is the user's. */
function isOurs({ name }: Container): boolean {
  return name !== 'sidecar';
}
