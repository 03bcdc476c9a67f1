import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { runWeirHere } from '../fixtures/run-here.ts';
import { logText, START_MS, writeFiles } from './log-lines.ts';

const WEIR = `
baseUrl: http://127.0.0.1:8080
upstream: { url: "http://127.0.0.1:8000" }
store: { kind: memory }
identity: { kind: static, file: identities.yaml }
operations: { list: [{ method: GET, path: /v3/things, id: listThings, cost: 1 }] }
limits: { file: limits.yaml }
`;

const limitsOn = (...operations: readonly string[]) => `
windowSeconds: 60
limits:
  lists: { per: account, requests: 2, window: 1m, operations: ${JSON.stringify(operations)} }
`;

/** Five requests for `GET /v3/things` within half a second. */
const LOG = logText(Array.from({ length: 5 }, (_, index) => ({ atMs: index * 100 })));

async function replayIn(files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const paths = Object.values(await writeFiles({ 'access.log': LOG, ...files }));
  return runWeirHere(['replay', 'access.log', ...args], {}, dirname(paths[0] ?? ''));
}

const FILES = { 'weir.yaml': WEIR, 'limits.yaml': limitsOn('GET /v3/things') };

it('replay reads weir.yaml of this folder, so limits on operations by path count', async () => {
  for (const args of [[], ['--limits', 'limits.yaml']]) {
    const { code, stdout, stderr } = await replayIn(FILES, ...args);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('refused after    3 (60 %)');
  }
});

it('--max-refused exits with 2 by the limits of this folder', async () => {
  const { code, stderr } = await replayIn(FILES, '--limits', 'limits.yaml', '--max-refused', '5%');
  expect(code).toBe(2);
  expect(stderr).toContain('60 % of the requests are refused, more than --max-refused allows.');
});

it("--suggest keeps the window of this folder's limits", async () => {
  const { stdout } = await replayIn(FILES, '--suggest', '5%');
  expect(stdout).toContain('\nwindowSeconds: 60\n');
});

it('an operation of a limit that no request of the log is for makes the exit code 2', async () => {
  const limits = limitsOn('GET /v3/things', 'GET /v3/thing');
  const { code, stderr } = await replayIn({ ...FILES, 'limits.yaml': limits });
  expect(code).toBe(2);
  expect(stderr).toContain('No request of the log is for GET /v3/thing, which the limit lists names.');
});

it.each([
  ['is for other operations', '{ lists: { per: account, kind: write, requests: 2, window: 1m } }'],
  ['has no owner in the log', '{ lists: { per: organization, requests: 2, window: 1m } }'],
  [
    'is only set by a plan that nobody in the log has',
    '{ lists: { per: account, requests: none, window: 1m } }\nplans: { pro: { lists: 2 } }',
  ],
])('a limit that counted no request, because it %s, makes the exit code 2', async (_why, limits) => {
  const { code, stderr } = await replayIn({ 'limits.yaml': `limits: ${limits}` }, '--limits', 'limits.yaml');
  expect(code).toBe(2);
  expect(stderr).toBe('The limit lists counted no request of the log.\n');
});

const UNTIL = new Date(START_MS + 250).toISOString();
const REFUSED = logText([{ atMs: 0, more: { outcome: 'denied', status: 429, bucket: 'lists' } }]);

it.each([
  ['in shadow mode', LOG, '{ limit: 2, shadow: true }', []],
  ['until it ended', LOG, `{ limit: 2, until: "${UNTIL}" }`, []],
  ['that are left out of the replay', REFUSED, '2', ['--retries', 'drop']],
])('a limit that counted requests %s makes the exit code 0', async (_how, log, limit, flags) => {
  const limits = `limits: { lists: { per: account, requests: none, window: 1m } }\naccounts: { acct_1: { lists: ${limit} } }`;
  const files = { 'access.log': log, 'limits.yaml': limits };
  const { code, stderr } = await replayIn(files, '--limits', 'limits.yaml', ...flags);
  expect(code, stderr).toBe(0);
});

it('a folder without weir.yaml and no limits is named', async () => {
  const { code, stderr } = await replayIn({});
  expect(code).toBe(1);
  expect(stderr).toContain('This folder has no weir.yaml.');
});
