import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Namespace } from './commands.ts';
import {
  createEnvironment,
  gatewayPods,
  imageValues,
  inventory,
  readmeInstall,
  removeEnvironment,
  scaleGateway,
  TOKEN,
} from './environment.ts';
import { type Answer, ask, probe } from './probe.ts';

const URL = 'http://weir/v3/things';
const UPGRADE = ['upgrade', 'weir', './helm/weir', '--reset-then-reuse-values'];

let namespace: Namespace;
let before: readonly string[];

beforeAll(async () => {
  namespace = await createEnvironment();
  before = await inventory(namespace);
});
afterAll(() => removeEnvironment(namespace));

/** What running pods have of the configuration. */
const inForce = async () => [
  await namespace.kubectl(
    'get',
    'configmap',
    '-l',
    'app.kubernetes.io/instance=weir',
    '-o',
    'jsonpath={.items[*].data}',
  ),
  await namespace.kubectl('get', 'deployment', 'weir', '-o', 'jsonpath={.metadata.generation}'),
];

/** The limit that an answer shows, once it is this one; the last one seen after two seconds. */
async function limitWithinTwoSeconds(limit: number): Promise<number> {
  const deadlineMs = performance.now() + 2_000;
  for (;;) {
    const { headers } = await ask(namespace, URL, TOKEN);
    const seen = Number(/"account-read";q=(\d+)/.exec(headers['ratelimit-policy'] ?? '')?.[1]);
    if (seen === limit || performance.now() > deadlineMs) return seen;
    await setTimeout(50);
  }
}

/** What a container has taken at most and may take, in MiB; the files of cgroup v2, or of v1. */
async function memoryOf(workload: string): Promise<{ peak: number; limit: number }> {
  const read = [
    'memory.peak',
    'memory/memory.max_usage_in_bytes',
    'memory.max',
    'memory/memory.limit_in_bytes',
  ];
  const files = read.map((name) => `/sys/fs/cgroup/${name}`);
  const printed = await namespace.kubectl(
    'exec',
    workload,
    '--',
    'sh',
    '-c',
    `cat ${files.join(' ')} 2>/dev/null; true`,
  );
  const [peak = Number.NaN, limit = Number.NaN] = printed
    .trim()
    .split('\n')
    .map((bytes) => Math.round(Number(bytes) / 1_048_576));
  return { peak, limit };
}

describe.sequential('a release', () => {
  it("is installed by the README's command, in a namespace with the restricted profile", async () => {
    await namespace.helm(...readmeInstall(), '--wait', '--timeout=180s');
    const pods = await gatewayPods(namespace);
    expect(pods).toHaveLength(2);
    expect(pods.map(({ restarts }) => restarts)).toEqual([0, 0]);
  });

  it('answers 401 without a token, and shows the limits with one', async () => {
    expect(await ask(namespace, URL, '')).toMatchObject({ status: 401 });
    const answer: Answer = await ask(namespace, URL, TOKEN);
    expect(answer).toMatchObject({ status: 200, text: '{}' });
    expect(answer.headers['ratelimit-policy']).toContain('"account-read";q=500;w=1');
    expect(answer.headers.ratelimit).toMatch(/"account-read";r=\d+;t=\d+/);
  });

  it('answers 429 through the Service once the limit is spent', async () => {
    await namespace.helm(...UPGRADE, '--set', 'limits.accounts.acct_1.account-read=5');
    expect(await limitWithinTwoSeconds(5)).toBe(5);
    const flood = await probe<{
      statuses: Record<string, number>;
      first429?: { headers: Record<string, string>; text: string };
    }>(namespace, 'flood', [URL, TOKEN, '500']);
    expect(flood.statuses[429]).toBeGreaterThan(0);
    expect(Number(flood.first429?.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(flood.first429?.text ?? '{}')).toMatchObject({ code: 'RateLimitExceeded' });
  });

  it('loses an override that is set to null', async () => {
    await namespace.helm(...UPGRADE, '--set', 'limits.accounts.acct_1=null');
    expect(await limitWithinTwoSeconds(500)).toBe(500);
  });

  it('passes helm test', async () => {
    await namespace.helm(...UPGRADE, '--set', 'tests.existingSecret.name=weir-test-token');
    const { code, stdout, stderr } = await namespace.tryHelm('test', 'weir');
    expect({ code, failed: /FAILED.*/.exec(stdout + stderr)?.[0] }).toEqual({ code: 0, failed: undefined });
    expect(stdout + stderr).toMatch(/every pod \(2\) has version [0-9a-f]{12} of the limits in force/);
  });

  it('refuses an upgrade to invalid limits: the operator sees why, and nothing changes', async () => {
    const was = await inForce();
    const { code, stdout, stderr } = await namespace.tryHelm(
      ...UPGRADE,
      '--set',
      'limits.defaults.account-read=5',
      '--set-json',
      'operations.list=[{"method":"GET","path":"/v3/things","cost":8}]',
    );
    expect(code).not.toBe(0);
    expect(stdout + stderr).toContain('the limit 5 is below the cost 8 of operation GET /v3/things');
    expect(await inForce()).toEqual(was);
    expect(await ask(namespace, URL, TOKEN)).toMatchObject({ status: 200 });
  });

  it('goes back to its earlier limits with helm rollback', async () => {
    await namespace.helm(...UPGRADE, '--set', 'limits.defaults.account-read=700');
    expect(await limitWithinTwoSeconds(700)).toBe(700);
    const revisions = JSON.parse(await namespace.helm('history', 'weir', '-o', 'json')) as {
      revision: number;
      status: string;
    }[];
    const earlier = revisions.findLast(({ status }) => status === 'superseded')?.revision;
    await namespace.helm('rollback', 'weir', String(earlier));
    expect(await limitWithinTwoSeconds(500)).toBe(500);
  });

  it('keeps its pods when autoscaling is turned on, and the number that kubectl scale chose', async () => {
    await scaleGateway(namespace, 3);
    const replicas = () => namespace.kubectl('get', 'deployment', 'weir', '-o', 'jsonpath={.spec.replicas}');
    await namespace.helm(...UPGRADE, '--set', 'limits.defaults.account-read=701');
    expect(await replicas()).toBe('3');
    const generation = () =>
      namespace.kubectl('get', 'deployment', 'weir', '-o', 'jsonpath={.metadata.generation}');
    const generationBefore = await generation();
    await namespace.helm(...UPGRADE, '--set', 'autoscaling.enabled=true,autoscaling.minReplicas=3');
    // Any change of the number, even one that was taken back, would have made another generation.
    expect([await replicas(), await generation()]).toEqual(['3', generationBefore]);
    expect(await gatewayPods(namespace)).toHaveLength(3);
  });

  it('takes an upgrade with --reuse-values as well', async () => {
    await namespace.helm('upgrade', 'weir', './helm/weir', '--reuse-values', ...imageValues(), '--wait');
    expect(await ask(namespace, URL, TOKEN)).toMatchObject({ status: 200 });
  });

  it('starts the platform within half of its memory limit', async () => {
    await namespace.helm(...UPGRADE, '--set', 'platform.enabled=true');
    await namespace.kubectl('rollout', 'status', 'deployment/weir-platform', '--timeout=180s');
    // V8 would optimise the WebAssembly of its database now, which takes most of the memory.
    await setTimeout(20_000);
    const { peak, limit } = await memoryOf('deployment/weir-platform');
    console.log(`the platform took at most ${peak} of ${limit} MiB`);
    expect(peak).toBeLessThan(limit / 2);
  });

  it('leaves nothing behind when it is uninstalled', async () => {
    await namespace.helm('uninstall', 'weir', '--wait');
    const after = await inventory(namespace);
    expect(after.filter((name) => !before.includes(name))).toEqual([]);
  });
});
