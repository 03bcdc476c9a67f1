import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { expect, it, onTestFinished } from 'vitest';
import { isMapping } from '../../src/config/reader/schema-node.ts';
import { CASES, only, type Rendering, render, renderText } from '../fixtures/helm.ts';
import { configurationIn, type PodSpec } from '../fixtures/pod-files.ts';
import { describeChart } from './describe-chart.ts';

/** The values of earlier charts. */
const EARLIER = 'test/helm/values';

/** Paths of the keys that `newer` has and `older` lacks, the topmost ones only. */
function addedKeys(newer: unknown, older: unknown, path: readonly string[] = []): readonly string[] {
  if (!isMapping(newer) || !isMapping(older)) return [];
  return Object.entries(newer).flatMap(([key, value]) =>
    Object.hasOwn(older, key) ? addedKeys(value, older[key], [...path, key]) : [[...path, key].join('.')],
  );
}

const readYaml = (file: string) => load(readFileSync(file, 'utf8'));

/** Removes every value that `file` lacks, as helm's command line would. */
function withoutAdded(file: string): readonly string[] {
  const added = addedKeys(readYaml('helm/weir/values.yaml'), readYaml(`${EARLIER}/${file}`));
  expect(added.length).toBeGreaterThan(0);
  return added.map((path) => `${path}=null`);
}

/** The pod that a rendering describes, and what the gateway reads in it. */
async function podOf(rendering: Rendering) {
  const manifests = render(rendering);
  const { spec } = only(manifests, 'Deployment', /^(weir|edge)$/) as {
    spec: { template: { spec: PodSpec } };
  };
  const pod = spec.template.spec;
  return { pod, ...(await configurationIn(pod, manifests)) };
}

describeChart('an upgrade with the values of an earlier chart (--reuse-values)', () => {
  it.each(readdirSync(EARLIER))(
    '%s: the gateway starts where its probes reach it, although it lacks every value that is new',
    async (file) => {
      for (const values of CASES) {
        const { settings } = await podOf({ values, set: withoutAdded(file) });
        expect([settings.listen.host, settings.admin.host], values).toEqual(['0.0.0.0', '0.0.0.0']);
      }
    },
  );

  it.each(readdirSync(EARLIER))('%s: the platform listens where the gateway reaches it', (file) => {
    const manifests = render({ values: 'demo-values.yaml', set: withoutAdded(file) });
    expect(JSON.stringify(only(manifests, 'Deployment', /^weir-platform$/))).toContain(
      '["--host","0.0.0.0"]',
    );
  });

  it('what the upgrade turns on has the new defaults', async () => {
    const lacking = ['listenAddress', 'telemetry.traces', 'telemetry.metrics', 'telemetry.headersSecret.key'];
    const turnedOn = ['telemetry.endpoint=http://c:4318', 'telemetry.headersSecret.name=c'];
    const decisions = ['decisions.enabled=true', 'decisions.trusted={10.0.0.0/8}'];
    const set = [...lacking.map((path) => `${path}=null`), ...turnedOn, ...decisions];
    const { pod, settings } = await podOf({ set });
    expect(settings.decisions.host).toBe('0.0.0.0');
    const env = JSON.stringify(pod.containers[0]?.env);
    expect(env).toContain('OTEL_EXPORTER_OTLP_ENDPOINT');
    expect(env).not.toMatch(/OTEL_(TRACES|METRICS)_EXPORTER/);
    expect(env).toContain('"secretKeyRef":{"key":"headers","name":"c"}');
  });

  it.each(readdirSync(EARLIER))('%s: watches the ConfigMaps all the same', (file) => {
    expect(renderText({ set: withoutAdded(file) })).toContain('kind: RoleBinding');
  });
});

/** What a cluster answers that runs the release with so many pods. */
const answersOf = (replicas: number): Readonly<Record<string, unknown>> => ({
  '/apis/apps/v1': {
    kind: 'APIResourceList',
    groupVersion: 'apps/v1',
    resources: [{ name: 'deployments', namespaced: true, kind: 'Deployment', verbs: ['get'] }],
  },
  '/apis/apps/v1/namespaces/edge/deployments/weir': {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'weir', namespace: 'edge' },
    spec: { replicas },
  },
});

/** A cluster's API server, as far as the chart looks at it. A fake is enough, because only `lookup` asks it. */
async function startCluster(replicas: number): Promise<Server> {
  const answers = answersOf(replicas);
  const server = createServer((request, response) => {
    const answer = answers[request.url?.split('?')[0] ?? ''];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { kind: 'Status', status: 'Failure', code: 404 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return server;
}

/** What an upgrade would apply where so many pods run. */
async function upgraded(replicas: number, ...set: string[]): Promise<string> {
  const { port } = (await startCluster(replicas)).address() as AddressInfo;
  const cluster = ['--dry-run=server', '--kube-apiserver', `http://127.0.0.1:${port}`];
  const args = ['template', 'weir', 'helm/weir', '--namespace', 'edge', ...cluster];
  for (const one of set) args.push('--set', one);
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  const { stdout } = await promisify(execFile)('helm', args, { env, maxBuffer: 2 ** 24 });
  return stdout;
}

describeChart('an upgrade after kubectl scale', () => {
  it('keeps the number of pods, and restarts none of them because of it', async () => {
    const set = ['redis.url=redis://redis', 'redis.onStoreFailure=share'];
    const [usual, scaled] = await Promise.all([upgraded(2, ...set), upgraded(5, ...set)]);
    expect(usual).toContain('\n  replicas: 2\n');
    expect(scaled).toBe(usual.replace('\n  replicas: 2\n', '\n  replicas: 5\n'));
  });
});

describeChart('rendering', () => {
  it.each(CASES)('%s: helm has nothing to warn about', (values) => {
    const args = ['template', 'weir', 'helm/weir'];
    if (values !== 'defaults') args.push('--values', `helm/weir/ci/${values}`);
    expect(spawnSync('helm', args, { encoding: 'utf8' }).stderr).toBe('');
  });
});
