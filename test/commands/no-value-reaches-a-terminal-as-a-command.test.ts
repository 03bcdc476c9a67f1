import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { runWeir } from '../fixtures/weir-process.ts';

/** Clears the screen, changes colours, moves the cursor, turns the text round, hides, and begins lines of its own. */
const HOSTILE =
  'h\u001b[2J\u009b31m\u0007\u007f\u202e\u2066\u200b\u2028\ufeff\u{e0041}\r\nForged: line\n\u0085';

/** A file name cannot have all of them, and an argument no NUL. */
const NAME = HOSTILE.replaceAll('/', '');

const UNSAFE = /[^\n\P{Cc}]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: HOSTILE, version: '1' },
  paths: {
    '/plain': {
      get: {
        operationId: HOSTILE,
        parameters: [{ name: HOSTILE, in: 'query', required: true, schema: { enum: [HOSTILE] } }],
        responses: {},
        'x-weir': { cost: 1, public: true },
      },
    },
    [`/b/${HOSTILE}`]: { get: { operationId: `${HOSTILE}2`, responses: {} } },
  },
};

const COUNTS = { points: 1, requests: 1, refused: 1 };
const TALKERS = { byPoints: [{ id: HOSTILE, ...COUNTS, error: 1 }], byRequests: [], byRefused: [] };
const LIMIT = { scope: 'account', id: HOSTILE, bucket: 'account-read', limit: 5 };
const REASON = { until: HOSTILE, why: HOSTILE, by: HOSTILE };
const BLOCK = { scope: HOSTILE, id: HOSTILE, bucket: 'blocked', limit: 0, ...REASON };

/** What an admin port could answer to each path. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/usage/accounts/a': {
    scope: 'account',
    id: HOSTILE,
    organization: HOSTILE,
    storeProblem: HOSTILE,
    blocks: [BLOCK],
    buckets: [{ bucket: HOSTILE, limit: 1, windowSeconds: 1, source: 'live', writtenAt: HOSTILE, ...REASON }],
    recent: { [HOSTILE]: COUNTS },
    operations: [{ operation: HOSTILE, ...COUNTS }],
  },
  '/usage/top?window=10s': { window: HOSTILE, replicas: 1, accounts: TALKERS, organizations: TALKERS },
  '/limits/live': [{ ...LIMIT, ...REASON }, BLOCK],
  '/blocks/accounts/a': { ...BLOCK, notes: [HOSTILE] },
  '/limits/live/accounts/a': [{ ...LIMIT, ...REASON }],
};

const server = createServer((request, response) => {
  const answer = ANSWERS[request.url ?? ''];
  response.statusCode = answer === undefined ? 400 : 200;
  response.end(JSON.stringify(answer ?? { error: HOSTILE }));
});

/** Folders and addresses of these tests, for the arguments below. */
const places = { admin: '', valid: '', invalid: '', folder: '', log: '' };

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const upstreamUrl = 'http://127.0.0.1:1';
  places.admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  places.valid = await writeConfiguration({
    upstreamUrl,
    settings: { operations: { openapi: 'hostile.json', list: [] } },
  });
  await writeFile(join(dirname(places.valid), 'hostile.json'), JSON.stringify(DOCUMENT));
  places.invalid = await writeConfiguration({
    upstreamUrl,
    settings: { [HOSTILE]: HOSTILE, baseUrl: HOSTILE, store: { kind: HOSTILE }, log: { level: HOSTILE } },
  });
  const folder = dirname(places.invalid);
  await writeFile(join(folder, 'limits.yaml'), JSON.stringify({ accounts: { [HOSTILE]: { [HOSTILE]: 5 } } }));
  await writeFile(
    join(folder, 'identities.yaml'),
    JSON.stringify({ tokens: { t: HOSTILE }, accounts: { [HOSTILE]: {} } }),
  );
  places.folder = await mkdtemp(join(tmpdir(), 'weir-hostile-'));
  await writeFile(join(places.folder, 'hostile.json'), JSON.stringify(DOCUMENT));
  places.log = join(places.folder, NAME);
  const charged = { method: 'GET', path: '/reports', cost: 1, kind: 'read' };
  const request = { time: 1_764_000_000_000, msg: 'request', outcome: 'denied', ...charged };
  const ids = { account: HOSTILE, organization: `${HOSTILE}2`, principal: HOSTILE, bucket: HOSTILE };
  // Most of it can be read, or there would be no limits to suggest.
  const lines = `${JSON.stringify({ ...request, ...ids })}\n`.repeat(9);
  await writeFile(places.log, `${lines}${HOSTILE}\n{"msg":"request"}\n`);
});
afterAll(() => void server.close());

type Place = typeof places;

/** Each command, with hostile values wherever it takes or reads any. */
const COMMANDS: readonly [string, (place: Place) => readonly string[]][] = [
  ['a command', () => [HOSTILE]],
  ['an option', () => ['check', `--${HOSTILE}`]],
  ['init', () => ['init', 'hostile.json', '--upstream', 'http://127.0.0.1:1', '--force']],
  ['init of no file', () => ['init', HOSTILE, '--upstream', 'http://127.0.0.1:1']],
  ['init with no URL', () => ['init', 'x', '--upstream', HOSTILE]],
  ['start', ({ invalid }) => ['start', '-c', invalid]],
  ['start without a file', () => ['start', '-c', HOSTILE]],
  ['check', ({ valid }) => ['check', '-c', valid]],
  ['check of an invalid file', ({ invalid }) => ['check', '-c', invalid]],
  ['explain', ({ valid }) => ['explain', 'GET', '/plain', '-c', valid]],
  [
    'explain of a refused path',
    ({ valid }) => ['explain', HOSTILE, HOSTILE, '-c', valid, '--account', HOSTILE],
  ],
  ['explain --json', ({ valid }) => ['explain', 'GET', '/plain', '-c', valid, '--json']],
  ['operations', ({ valid }) => ['operations', '-c', valid]],
  ['operations in Markdown', ({ valid }) => ['operations', '-c', valid, '--format', 'markdown']],
  ['operations in JSON', ({ valid }) => ['operations', '-c', valid, '--format', 'json']],
  ['operations in no format', ({ valid }) => ['operations', '-c', valid, '--format', HOSTILE]],
  ['revoke', ({ valid }) => ['revoke', '-c', valid, '--principal', HOSTILE]],
  ['revoke without a file', () => ['revoke', '-c', HOSTILE, '--list']],
  ['usage', ({ admin }) => ['usage', 'a', '--url', admin]],
  ['usage --json', ({ admin }) => ['usage', 'a', '--url', admin, '--json']],
  ['usage of nobody', ({ admin }) => ['usage', HOSTILE, '--url', admin]],
  ['usage at no URL', () => ['usage', 'a', '--url', HOSTILE, '--ca', HOSTILE]],
  ['top', ({ admin }) => ['top', '--once', '--url', admin]],
  ['top --json', ({ admin }) => ['top', '--json', '--url', admin]],
  ['top of no window', () => ['top', '--window', HOSTILE]],
  ['limit list', ({ admin }) => ['limit', 'list', '--url', admin]],
  ['limit list --json', ({ admin }) => ['limit', 'list', '--url', admin, '--json']],
  ['limit set', ({ admin }) => ['limit', 'set', 'a', 'account-read=5', '--why', 'w', '--url', admin]],
  [
    'limit set of no bucket',
    ({ admin }) => ['limit', 'set', HOSTILE, HOSTILE, '--why', HOSTILE, '--url', admin],
  ],
  ['limit block', ({ admin }) => ['limit', 'block', 'a', '--why', 'w', '--url', admin]],
  ['limit unblock', ({ admin }) => ['limit', 'unblock', HOSTILE, '--why', HOSTILE, '--url', admin]],
  ['limit unset', ({ admin }) => ['limit', 'unset', HOSTILE, '--why', HOSTILE, '--url', admin]],
  ['limit unset of nobody', ({ admin }) => ['limit', 'unset', `${HOSTILE}2`, '--why', 'w', '--url', admin]],
  ['replay', ({ log }) => ['replay', log, '--limits', 'limits.yaml']],
  ['replay --json', ({ log }) => ['replay', log, '--limits', 'limits.yaml', '--json']],
  ['replay --suggest', ({ log }) => ['replay', log, '--suggest', '1%', '--limits', 'limits.yaml']],
  ['replay of no file', () => ['replay', HOSTILE, '--suggest', '1%']],
  ['replay with no mapping', ({ log }) => ['replay', log, '--suggest', '1%', '--map', HOSTILE]],
  [
    'replay with no pattern',
    ({ log }) => ['replay', log, '--suggest', '1%', '--format', 'json', '--account-pattern', `(${HOSTILE}`],
  ],
  ['replay in no format', ({ log }) => ['replay', log, '--format', HOSTILE]],
];

/** `start` changes its process, so it gets one of its own. */
const run = (args: readonly string[]) =>
  (args[0] === 'start' ? runWeir : runWeirHere)(args, {}, places.folder);

describe('no value reaches a terminal as a command, or begins a line', () => {
  it.each(COMMANDS)('%s', async (_, argumentsAt) => {
    if (!places.folder) throw new Error('the files are missing');
    await writeFile(join(places.folder, 'limits.yaml'), 'windowSeconds: 1\n');
    const { stdout, stderr } = await run(argumentsAt(places));
    expect(stdout + stderr).not.toBe('');
    expect(`${stdout}${stderr}`).not.toMatch(UNSAFE);
    expect(`${stdout}${stderr}`).not.toMatch(/^Forged/m);
    expect(stderr).not.toMatch(/^ {4}at /m);
  });

  it.each(COMMANDS.filter(([name]) => /JSON/i.test(name)))(
    '%s has the value as it is',
    async (_, argumentsAt) => {
      const { stdout } = await run(argumentsAt(places));
      const values: unknown[] = [];
      JSON.parse(stdout, (_key, value) => {
        values.push(value);
        return value;
      });
      expect(values).toContain(HOSTILE);
    },
  );

  it('suggested limits belong to the ids in the log', async () => {
    const args = ['replay', places.log, '--suggest', '1%', '--limits', 'limits.yaml'];
    const { stdout } = await run(args);
    const { load } = await import('js-yaml');
    const { accounts } = load(stdout) as { readonly accounts: object };
    expect(Object.keys(accounts)).toEqual([HOSTILE]);
  });
});
