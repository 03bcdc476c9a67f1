import { readFileSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeSection } from '../../bench/report/section.ts';
import type { Namespace } from './commands.ts';
import { checkOut, EARLIER, isInHistory } from './earlier-release.ts';
import {
  createEnvironment,
  gatewayPods,
  IMAGE,
  imageValues,
  OTHER_TOKEN,
  readmeInstall,
  removeEnvironment,
  TOKEN,
} from './environment.ts';
import { degradedIn, finish, type Progress, RATE_PER_SECOND, startLoad, URL, until } from './load.ts';
import { ask, type Probe } from './probe.ts';

const PACKAGE = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const TODAY = { version: PACKAGE.version, image: IMAGE };
const HAS_EARLIER = isInHistory();

const UPGRADE = ['upgrade', 'weir', './helm/weir', '--reset-then-reuse-values', ...imageValues()];

interface Step {
  readonly step: string;
  readonly helm: readonly string[];
  readonly to: { readonly version: string; readonly image: string };
}
const STEPS: readonly Step[] = [
  { step: `upgrade from ${EARLIER.version}`, helm: UPGRADE, to: TODAY },
  { step: `rollback to ${EARLIER.version}`, helm: ['rollback', 'weir'], to: EARLIER },
  { step: 'upgrade again', helm: UPGRADE, to: TODAY },
];

const PODS = 3;
/** Of the client that sends more than its limit. */
const CLIENT_RATE_PER_SECOND = 20;
/** Longer than a test may take: the test ends its loads. */
const LOAD_SECONDS = 900;
const HOUR_SECONDS = 3_600;
const SHORT_SECONDS = 5;

const WAIT = ['--wait', '--timeout=180s'];

let namespace: Namespace;
let client: Probe;
const steps: (Step & { progress: Progress; points: number })[] = [];
const windows: { windowSeconds: number; limit: number; sent: number; failed: number; fullest: number }[] = [];

afterAll(save);

/** Installs the release as its own README says, and starts the client, whose Account has this limit. */
async function startEarlier(windowSeconds: number, limit: number): Promise<void> {
  namespace = await createEnvironment();
  const values = [
    `replicaCount=${PODS}`,
    // A busy machine must not turn a slow answer into an uncounted request.
    'redis.deadlineMs=1000',
    `limits.windowSeconds=${windowSeconds}`,
    'limits.defaults.account-read=1000000',
    `limits.accounts.acct_2.account-read=${limit}`,
  ];
  const folder = checkOut();
  try {
    const set = values.flatMap((one) => ['--set', one]);
    await namespace.helm(...readmeInstall(folder, EARLIER.image), ...WAIT, ...set);
  } finally {
    rmSync(folder, { recursive: true });
  }
  await hasOnlyPodsOf(EARLIER);
  // A pod is ready before the Service leads to it.
  await vi.waitFor(() => ask(namespace, URL, TOKEN), { timeout: 30_000, interval: 200 });
  client = startLoad(namespace, OTHER_TOKEN, CLIENT_RATE_PER_SECOND, LOAD_SECONDS);
  await until(client, ({ statuses }) => (statuses[429] ?? 0) > 0);
}

async function stop(): Promise<void> {
  client?.kill();
  await removeEnvironment(namespace);
}

/** Runs a step until the pods of the other version have ended: each accepts requests for a while after Helm is done. */
async function take({ helm, to }: Step): Promise<void> {
  await namespace.helm(...helm, ...WAIT);
  await hasOnlyPodsOf(to);
}

async function hasOnlyPodsOf({ image, version }: Step['to']): Promise<void> {
  const list = ['get', 'pods', '-l', 'app.kubernetes.io/component=gateway'];
  const images = '{.items[*].spec.containers[*].image}';
  await vi.waitFor(
    async () => {
      const printed = await namespace.kubectl(...list, '-o', `jsonpath=${images}`);
      expect(printed.split(' ')).toEqual(Array(PODS).fill(image));
    },
    { timeout: 90_000, interval: 1_000 },
  );
  const versions = (await gatewayPods(namespace)).map(async ({ ip }) => {
    const { text } = await ask(namespace, `http://${ip}:9090/metrics`, '');
    return /^weir_build_info\{.*version="([^"]*)"/m.exec(text)?.[1];
  });
  expect(await Promise.all(versions), 'what the pods report').toEqual(Array(PODS).fill(version));
}

/** What acct_1 has left, after a request that costs a point. */
async function pointsLeft(): Promise<number> {
  const { headers } = await ask(namespace, URL, TOKEN);
  return Number(/"account-read";r=(\d+)/.exec(headers.ratelimit ?? '')?.[1]);
}

/** The most requests that were certainly decided within one window. */
function fullestWindow({ admittedMs }: Progress, windowSeconds: number): number {
  const counts = admittedMs.map(([startMs]) => {
    const endMs = startMs + windowSeconds * 1_000;
    return admittedMs.filter(([fromMs, toMs]) => fromMs >= startMs && toMs < endMs).length;
  });
  return Math.max(0, ...counts);
}

/** Ends the client: none of its requests failed, and no window admitted more than its limit. Answers how many were admitted. */
async function endClient(windowSeconds: number, limit: number): Promise<{ all: Progress; admitted: number }> {
  const all = await finish(client);
  const fullest = fullestWindow(all, windowSeconds);
  windows.push({ windowSeconds, limit, sent: all.sent, failed: all.failed, fullest });
  expect(all.failures, JSON.stringify(all.statuses)).toEqual([]);
  expect(Object.keys(all.statuses).filter((status) => !/^(200|429)\b/.test(status))).toEqual([]);
  expect(fullest).toBeLessThanOrEqual(limit);
  // One that is served degraded may have been counted.
  return { all, admitted: all.admittedMs.length + degradedIn(all) };
}

describe.skipIf(!HAS_EARLIER).sequential('within a window of an hour', () => {
  const LIMIT = 100;
  beforeAll(() => startEarlier(HOUR_SECONDS, LIMIT));
  afterAll(stop);

  it.each(STEPS)('$step: no request fails, and each is counted once', async (step) => {
    const leftBefore = await pointsLeft();
    const load = startLoad(namespace, TOKEN, RATE_PER_SECOND, LOAD_SECONDS);
    try {
      await until(load, ({ sent }) => sent > RATE_PER_SECOND);
      await take(step);
      const progress = await finish(load);
      const points = leftBefore - (await pointsLeft()) - 1;
      steps.push({ ...step, progress, points });
      const { sent, statuses, failures } = progress;
      const degraded = degradedIn(progress);
      expect(failures, JSON.stringify(statuses)).toEqual([]);
      expect((statuses[200] ?? 0) + degraded, JSON.stringify(statuses)).toBe(sent);
      expect(degraded).toBeLessThan(sent / 20);
      // One that is served degraded may have been counted.
      expect(points).toBeGreaterThanOrEqual(sent - degraded);
      expect(points).toBeLessThanOrEqual(sent);
    } finally {
      load.kill();
    }
  });

  it('a client that had spent its limit before the upgrade gets nothing more from either version', async () => {
    const { admitted } = await endClient(HOUR_SECONDS, LIMIT);
    expect(admitted).toBeGreaterThanOrEqual(LIMIT);
  });
});

describe.skipIf(!HAS_EARLIER).sequential('while windows of five seconds come and go', () => {
  const LIMIT = 50;
  beforeAll(() => startEarlier(SHORT_SECONDS, LIMIT));
  afterAll(stop);

  it.each(STEPS)('$step', take);

  it('a client above its limit never got more than it in any window, and no much less', async () => {
    const { all, admitted } = await endClient(SHORT_SECONDS, LIMIT);
    const windowsPassed = all.sent / CLIENT_RATE_PER_SECOND / SHORT_SECONDS;
    expect(admitted).toBeGreaterThan((LIMIT * windowsPassed) / 2);
  });
});

/** `WEIR_WRITE_RESULTS=1` puts the tables into bench/RESULTS.md. */
function save(): void {
  if (steps.length === 0) return;
  const table = [
    `${PODS} pods; ${RATE_PER_SECOND} requests a second through the Service, half of them on new connections.`,
    '',
    '| step | requests | failed | served degraded | points counted in Redis |',
    '|---|--:|--:|--:|--:|',
    ...steps.map(
      ({ step, progress, points }) =>
        `| ${step} | ${progress.sent} | ${progress.failed} | ${degradedIn(progress)} | ${points} |`,
    ),
    '',
    `A client that sends ${CLIENT_RATE_PER_SECOND} requests a second through all of these steps:`,
    '',
    '| window | its limit | requests | failed | most admitted in any window |',
    '|---|--:|--:|--:|--:|',
    ...windows.map(
      ({ windowSeconds, limit, sent, failed, fullest }) =>
        `| ${windowSeconds} s | ${limit} | ${sent} | ${failed} | ${fullest} |`,
    ),
  ].join('\n');
  console.log(table);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const at = new Date().toISOString().slice(0, 16).replace('T', ' ');
  const head = `### An upgrade under load on Kubernetes\n\n${at} UTC, \`npm run test:cluster\`, ${EARLIER.version} and ${TODAY.version}.`;
  writeSection('cluster-upgrade', `${head}\n${table}`);
}
