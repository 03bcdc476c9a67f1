import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { check } from '../../src/commands/check/check.ts';
import { explain as explainCommand } from '../../src/commands/costs/explain.ts';
import { operations } from '../../src/commands/costs/operations.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runHere, runWeirHere } from '../fixtures/run-here.ts';

let config: string;
beforeAll(async () => {
  config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    limits: { accounts: { acct_1: { 'account-write': 50 } } },
  });
});

interface Caller {
  readonly token?: string;
  readonly account?: string;
}

async function explain(method: string, path: string, caller: Caller = {}): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere(() =>
    explainCommand(method, path, { config, json: true, ...caller }),
  );
  const explanation = JSON.parse(stdout);
  const isRefused = explanation.refusal !== null || explanation.errors.length > 0;
  expect([code, stderr]).toEqual([isRefused ? 1 : 0, '']);
  return explanation;
}

describe('weir explain', () => {
  it('says that the gateway itself answers the path of usage.path, for no points', async () => {
    const settings = {
      usage: { path: '/my/limits' },
      operations: { openapi: 'openapi.yaml', unlisted: 'reject' },
    };
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings });
    const asked = (method: string, json?: true) =>
      runHere(() => explainCommand(method, '/my/%6Cimits', { config: file, ...(json && { json }) }));
    const { code, stdout } = await asked('GET', true);
    expect(JSON.parse(stdout)).toMatchObject({
      path: '/my/limits',
      operation: { id: 'usage', cost: 0, kind: 'read' },
      buckets: [],
      refusal: null,
    });
    expect(code).toBe(0);
    expect((await asked('HEAD')).stdout).toContain('the gateway answers with the limits of the caller');
    expect(await asked('OPTIONS')).toMatchObject({ code: 0 });
    expect(await asked('POST')).toMatchObject({ code: 1, stdout: expect.stringContaining('405') });
  });

  it('names the operation, its cost with file and line, and the buckets of the Account that a token acts on', async () => {
    expect(await explain('POST', '/v3/reports', { token: 'person' })).toMatchObject({
      method: 'POST',
      path: '/v3/reports',
      operation: {
        id: 'reportWrite',
        method: 'POST',
        path: '/v3/reports',
        listed: true,
        cost: 7,
        kind: 'write',
        personOnly: false,
        public: false,
        costWrittenAt: expect.stringMatching(/openapi\.yaml:\d+$/),
      },
      principal: 'person_1',
      account: 'acct_1',
      organization: 'org_1',
      buckets: [
        { bucket: 'account-write', of: 'acct_1', limit: 50, windowSeconds: 60 },
        { bucket: 'organization-write', of: 'org_1', limit: 30, windowSeconds: 60 },
      ],
      policy:
        '"account-read";q=20;w=60, "account-write";q=50;w=60, "organization-read";q=30;w=60, "organization-write";q=30;w=60',
      errors: [],
      refusal: null,
    });
  });

  it('a Person-only operation is charged to the Person', async () => {
    const { buckets } = await explain('GET', '/v3/mfa-factors', { token: 'person', account: 'acct_2' });
    expect(buckets).toEqual([
      { bucket: 'person-read', of: 'person_1', limit: 10, windowSeconds: 60, shadow: false },
    ]);
  });

  it('an Account can be given without a token, and so can no caller at all', async () => {
    const named = await explain('GET', '/v3/things/1', { account: 'acct_3' });
    expect(named).toMatchObject({
      account: 'acct_3',
      organization: null,
      buckets: [{ of: 'acct_3', limit: 20 }],
    });
    const nobody = await explain('GET', '/v3/nothing/at/all');
    expect(nobody).toMatchObject({
      operation: { listed: false, cost: 1 },
      account: null,
      buckets: [{ of: null }, { of: null }],
    });
  });

  it('a request that the gateway would refuse is reported with the same refusal', async () => {
    expect(await explain('GET', '/v3//things')).toMatchObject({
      refusal: { status: 400, code: 'BadRequest' },
    });
    expect(await explain('GET', '/v3/things', { token: 'made-up' })).toMatchObject({
      refusal: { status: 401 },
    });
    expect(await explain('GET', '/v3/things', { token: 'person', account: 'acct_4' })).toMatchObject({
      refusal: { status: 403 },
    });
    expect(await explain('GET', '/v3/lists?limit=5&page[size]=0')).toMatchObject({
      operation: {
        validation: {
          mode: 'parameters',
          query: { parameters: expect.arrayContaining(['page[size]']), others: '422' },
        },
      },
      errors: [{ field: 'limit' }, { field: 'page[size]' }],
      refusal: null,
    });
  });

  it('what the client does not learn is explained: why a token or an Account is refused', async () => {
    const sha = createHash('sha256').update('made-up').digest('hex');
    expect(await explain('GET', '/v3/things', { token: 'made-up' })).toMatchObject({
      refusal: {
        detail: 'The access token is not valid.',
        reason: 'unknown-token',
        reasonText: `no entry of the identities file is this token, or sha256:${sha}`,
      },
    });
    expect(await explain('GET', '/v3/things', { token: 'person', account: 'acct_4' })).toMatchObject({
      refusal: { reason: 'foreign-account', reasonText: 'person_1 acts for acct_1, acct_2 only' },
    });
    for (const caller of [{ account: 'acct_33' }, { token: 'organization', account: 'acct_33' }]) {
      expect(await explain('GET', '/v3/things', caller)).toMatchObject({
        refusal: {
          reason: 'unknown-account',
          reasonText: 'the directory of Accounts does not have acct_33; did you mean "acct_3"?',
        },
      });
    }
  });

  it('an API key that is too short is said to be, and the digest that is looked up is shown', async () => {
    const endpoint = createServer((_, response) => void response.writeHead(404).end()).listen(0, '127.0.0.1');
    onTestFinished(() => void endpoint.close());
    await once(endpoint, 'listening');
    const upstreamUrl = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;
    const settings = { identity: { kind: 'api-keys', url: '/keys/{digest}' } };
    const file = await writeConfiguration({ upstreamUrl, settings });
    const text = async (token: string) =>
      (await runHere(() => explainCommand('GET', '/v3/things', { config: file, token }))).stdout;
    expect(await text('wk_short')).toMatch(
      /because +malformed: it is not in the file, and an API key has 16 to 512 letters, digits or /,
    );
    const key = `wk_${'k'.repeat(20)}`;
    const sha = createHash('sha256').update(key).digest('hex');
    expect(await text(key)).toContain(`unknown-token: ${upstreamUrl}/keys/${sha} answers 404.`);
  });

  it('the default output is text', async () => {
    const words = ['put', '/v3/strict/th_a', '--token', 'service', '--account', 'acct_1'];
    const { stdout } = await runWeirHere(['explain', ...words, '--config', config]);
    expect(stdout).toMatch(
      /^PUT \/v3\/strict\/th_a\n {2}operation {2}strictPut \(PUT \/v3\/strict\/\{thingId\}\), .*openapi\.yaml:\d+\n/,
    );
    expect(stdout).toMatch(/cost {7}1 point, by default\n/);
    expect(stdout).toMatch(/path thingId; headers Idempotency-Key; body application\/json, text\/csv\n/);
    expect(stdout).toMatch(/charged to account-write of acct_1: 50 points in 1 min\n/);
  });

  it('the kind of a further method is its own', async () => {
    const paths = { '/v3/files': { additionalOperations: { COPY: {} } } };
    const openapi = { openapi: '3.2.0', info: { title: 'files', version: '1' }, paths };
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', openapi });
    const { stdout } = await runHere(() => explainCommand('COPY', '/v3/files', { config: file }));
    expect(stdout).toMatch(/kind +write\n/);
  });

  it('a settlement is explained and listed', async () => {
    const list = [
      {
        method: 'POST',
        path: '/chat',
        cost: 400,
        settle: { json: '/usage/total_tokens' },
        refundOn: ['5xx', 404],
      },
      {
        method: 'POST',
        path: '/text',
        cost: 4,
        reserve: { json: '/max_tokens', most: 900 },
        settle: { header: 'X-Cost' },
      },
      { method: 'GET', path: '/file', cost: 4, settle: { bytes: 1024 } },
      { method: 'GET', path: '/plain' },
    ];
    const defaults = {
      'account-read': 1_000,
      'account-write': 1_000,
      'organization-read': 1_000,
      'organization-write': 1_000,
    };
    const settings = { operations: { list } };
    const file = await writeConfiguration({
      upstreamUrl: 'http://127.0.0.1:1',
      settings,
      limits: { defaults },
    });
    const explained = async (method: string, path: string) =>
      (await runHere(() => explainCommand(method, path, { config: file }))).stdout;
    expect(await explained('POST', '/chat')).toMatch(
      /settlement +reserves 400, settles by \/usage\/total_tokens, costs nothing on 5xx and 404\n/,
    );
    expect(await explained('POST', '/text')).toMatch(
      /settlement +reserves \/max_tokens of the body, at most 900, 4 without it, settles by the field x-cost\n/,
    );
    expect(await explained('GET', '/file')).toMatch(
      /settlement +reserves 4, settles by a point for each 1024 bytes\n/,
    );
    expect(await explained('GET', '/plain')).not.toContain('settlement');
    const listed = await runHere(() => operations({ config: file, format: 'json' }));
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { reserve: null, settle: { json: '/usage/total_tokens' }, refundOn: ['5xx', '404'] },
      { reserve: { json: '/max_tokens', most: 900 }, settle: { header: 'x-cost' }, refundOn: [] },
      { settle: { bytes: 1024 } },
      { reserve: null, settle: null, refundOn: [] },
    ]);
    expect((await runHere(() => operations({ config: file, format: 'table' }))).stdout).toMatch(
      / SETTLEMENT\n/,
    );
  });
});

describe('weir operations and weir check', () => {
  const operation = (cost?: number) => ({
    ...(cost === undefined ? {} : { 'x-weir': { cost } }),
    responses: {},
  });
  beforeAll(async () => {
    const paths = {
      '/v4/priced/{id}': { get: operation(3) },
      '/v3/unpriced': { get: operation() },
      '/v3/slash//end': { get: operation(2) },
      '/v3/{a}/b': { get: operation(1) },
      '/v3/a/{b}': { get: operation(1) },
      '/v2/{a}/b/c': { get: operation(1) },
      '/v2/a/{b}/c': { get: operation(1) },
      '/v2/a/b/{c}': { get: operation(4) },
      '/v3/health': { get: { ...operation(0), security: [] }, post: { ...operation(2), security: [] } },
      '/v3/free-form': { get: { ...operation(1), 'x-weir': { cost: 1, validate: false } } },
    };
    const document = JSON.stringify({ openapi: '3.1.0', info: { title: 't', version: '1' }, paths }, null, 2);
    await writeFile(join(dirname(config), 'second.yaml'), document);
  });
  beforeEach(() => {
    vi.stubEnv('WEIR_OPERATIONS_OPENAPI', 'second.yaml');
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });
  const list = (format: string) => runHere(() => operations({ config, format }));

  it('the list has every price, and marks what is unpriced, shadowed, ambiguous and overlapping', async () => {
    const { code, stdout } = await list('json');
    expect(code).toBe(0);
    const entries = JSON.parse(stdout) as {
      path: string;
      cost: number;
      remarks: { kind: string; text: string }[];
    }[];
    expect(
      entries.map(({ path, cost, remarks }) => [path, cost, remarks.map(({ kind }) => kind).join()]),
    ).toEqual([
      ['/v4/priced/{id}', 3, ''],
      ['/v3/unpriced', 1, 'unpriced'],
      ['/v3/slash//end', 2, 'shadowed'],
      ['/v3/{a}/b', 1, 'overlapping'],
      ['/v3/a/{b}', 1, 'overlapping'],
      ['/v2/{a}/b/c', 1, 'ambiguous'],
      ['/v2/a/{b}/c', 1, 'ambiguous'],
      ['/v2/a/b/{c}', 4, 'ambiguous'],
      ['/v3/health', 0, ''],
      ['/v3/health', 2, ''],
      ['/v3/free-form', 1, ''],
    ]);
    const markdown = await list('markdown');
    expect(markdown.stdout).toContain(
      '| GET | /v4/priced/{id} | GET /v4/priced/{id} | 3 | read | any | parameters |',
    );
    expect(markdown.stdout).toContain('| POST | /v3/health | POST /v3/health | 2 | write | PUBLIC |');
    expect((await list('table')).stdout).toMatch(/^METHOD +PATH +OPERATION +COST/);
    expect((await list('xml')).failure).toMatch(/^--format xml is not one of/);
  });

  it.each(['foo', '10.0.0.0/8', '[2001:DB8::5]', '010.0.0.1', ''])(
    '--address takes no %j',
    async (address) => {
      const { failure } = await runHere(() => explainCommand('POST', '/v3/health', { config, address }));
      expect(failure).toBe(
        `--address takes an IP address, such as 203.0.113.7 or 2001:db8::1, not "${address}".`,
      );
    },
  );

  it('a public operation is explained without a token, for any address or for one', async () => {
    const explainHealth = (method: string, more: object) =>
      runHere(() => explainCommand(method, '/v3/health', { config, ...more }));
    const { code, stdout } = await explainHealth('POST', { token: 'made-up' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/callers +public: needs no token\n/);
    expect(stdout).toMatch(/charged to address-write of anyone without an override: 10 points in 1 min\n/);
    const words = ['explain', 'POST', '/v3/health', '--address', '2001:db8::1', '--json', '--config', config];
    const json = await runWeirHere(words, { WEIR_OPERATIONS_OPENAPI: 'second.yaml' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      operation: { public: true, personOnly: false },
      account: null,
      buckets: [{ bucket: 'address-write', of: '2001:db8::/64' }],
      policy: '"address-read";q=10;w=60, "address-write";q=10;w=60',
    });
    const free = await explainHealth('GET', {});
    expect(free.stdout).toMatch(/cost +0 points/);
    expect(free.stdout).not.toContain('charged to');
  });

  it('check prints a summary, and warns of operations that no request can reach', async () => {
    const { code, stdout, stderr } = await runHere(() => check({ config }));
    expect(code).toBe(0);
    expect(stdout).toContain(
      '11 operations (4 cost more than 1 point, 1 without a written cost, 2 public, 1 unvalidated)',
    );
    expect(stdout).toContain(
      'public, without a token: GET /v3/health (free)\npublic, without a token: POST /v3/health\n',
    );
    expect(stderr).toMatch(
      /second\.yaml:\d+: warning: GET \/v3\/slash\/\/end is shadowed: The path has two slashes in a row\. Use one\. The setting upstream\.pathProfile\.duplicateSlashes: distinct allows it\.\n/,
    );
    expect(stderr.match(/GET \/v2\/\S+ is ambiguous: some of its paths also match/g)).toHaveLength(3);
    expect(stderr).toMatch(
      /warning: 2 operations share paths with another one that is charged alike: only their validation can differ/,
    );
    expect(stderr).not.toContain('/v3/a/{b}');
  });
});

it('weir explain says that an Account is unknown, or that it cannot be known', async () => {
  const unknown = await explain('GET', '/v3/things', { account: 'acct_11' });
  expect(unknown).toMatchObject({
    refusal: {
      status: 403,
      reason: 'unknown-account',
      reasonText: expect.stringContaining('mean "acct_1"?'),
    },
    note: null,
  });
  const signed = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { identity: { kind: 'jwt', jwksUrl: 'http://127.0.0.1:1/', issuer: 'x', audience: 'y' } },
    limits: { accounts: { acct_1: { 'account-write': 50 } } },
  });
  const noteOn = async (account: string) =>
    JSON.parse(
      (await runHere(() => explainCommand('GET', '/v3/things', { config: signed, json: true, account })))
        .stdout,
    ).note;
  expect(await noteOn('acct_11')).toMatch(/^whether acct_11 exists, .* unknown: only tokens name them/);
  expect(await noteOn('acct_1')).toBeNull();
  const { stdout } = await runHere(() =>
    explainCommand('GET', '/v3/things', { config: signed, account: 'acct_11' }),
  );
  expect(stdout).toMatch(/\n {2}note +whether acct_11 exists/);
});
