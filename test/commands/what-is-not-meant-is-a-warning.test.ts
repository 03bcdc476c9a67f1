import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { check } from '../../src/commands/check/check.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runHere } from '../fixtures/run-here.ts';
import { startWeir } from '../fixtures/weir-process.ts';

// Variables that control the tests, such as WEIR_TEST_PYTHON, are no settings either.
beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('WEIR_')) vi.stubEnv(name, undefined);
});
afterEach(() => vi.unstubAllEnvs());

/** The warnings of `weir check`, without the name of the folder. */
async function warningsOf(
  test: Partial<Parameters<typeof writeConfiguration>[0]>,
  files: Readonly<Record<string, object>> = {},
): Promise<readonly string[]> {
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', ...test });
  const folder = dirname(file);
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, name), JSON.stringify(content, null, 1));
  }
  const { stderr, failure } = await runHere(() => check({ config: file }));
  expect(failure).toBeUndefined();
  return stderr.replaceAll(`${folder}/`, '').split('\n').slice(0, -1);
}

const NONE = { tokens: {}, principals: {}, accounts: {} };

it('a usual configuration has no warnings', async () => {
  expect(await warningsOf({})).toEqual([]);
});

it('overrides of unknown Accounts and Organizations, and overrides that have expired, are warnings with their lines', async () => {
  const accounts = {
    acct_1: { 'account-read': { limit: 50, until: '2020-01-01' } },
    acct_2: { 'account-read': 50, until: '2999-01-01' },
    acct_33: { 'account-read': 50 },
  };
  const limits = {
    accounts,
    organizations: { org_1: { 'organization-read': 50 }, nobody: { until: '2020-01-01' } },
  };
  const warnings = (await warningsOf({ limits })).map((line) =>
    line.replace(/^limits\.yaml:\d+/, 'limits.yaml:#'),
  );
  expect(warnings).toEqual([
    'limits.yaml:#: warning: accounts.acct_33: is not in identities.yaml: did you mean "acct_3"?',
    'limits.yaml:#: warning: accounts.acct_1: expired at 2020-01-02T00:00:00.000Z: the defaults apply',
    'limits.yaml:#: warning: organizations.nobody: is not in identities.yaml',
  ]);
});

it('many warnings of a kind are shortened', async () => {
  const ids = Array.from({ length: 5_000 }, (_, index) => [`unknown_${index}`, { 'account-read': 50 }]);
  const warnings = await warningsOf({ limits: { accounts: Object.fromEntries(ids) } });
  expect(warnings).toHaveLength(11);
  expect(warnings.at(-1)).toBe('limits.yaml: warning: 4990 more of this kind');
});

it('identities without tokens are a warning, unless API keys authenticate callers', async () => {
  expect(await warningsOf({ identities: { ...NONE, accounts: { acct_1: {} } } })).toEqual([
    'identities.yaml: warning: tokens: is empty: every request that needs a token gets a 401',
  ]);
  const identity = { kind: 'api-keys', file: 'identities.yaml' };
  expect(await warningsOf({ settings: { identity }, identities: NONE })).toEqual([
    'identities.yaml: warning: accounts: is empty: every request that needs a token gets a 403',
  ]);
});

it('a variable that sets nothing is a warning, unless Kubernetes sets it for a Service', async () => {
  const names = ['WEIR_PROT', 'WEIR_LISTEN_PORT', 'WEIR_STORE_DEADLINE', 'WEIR_FRUIT', 'WEIR_TOKEN'];
  for (const name of names) vi.stubEnv(name, '80');
  vi.stubEnv('WEIR_GATEWAY_PORT', 'tcp://10.0.0.1:80');
  vi.stubEnv('WEIR_PORT_8080_TCP_ADDR', '10.0.0.1');
  vi.stubEnv('WEIR_SERVICE_PORT_HTTP', '80');
  vi.stubEnv('WEIR_SERVICE_HOST', '10.0.0.1');
  expect(await warningsOf({})).toEqual([
    'WEIR_FRUIT: warning: there is no such setting',
    'WEIR_LISTEN_PORT: warning: there is no such setting: did you mean WEIR_PORT?',
    'WEIR_PROT: warning: there is no such setting: did you mean WEIR_PORT?',
    'WEIR_STORE_DEADLINE: warning: there is no such setting: did you mean WEIR_STORE_DEADLINE_MS?',
  ]);
});

const document = (schema: object, validate: unknown) => ({
  openapi: '3.1.0',
  info: { title: 'test', version: '1' },
  paths: {
    '/things': {
      'x-weir': { cost: 1, validate },
      post: { requestBody: { content: { 'application/json': { schema } } } },
    },
  },
  components: { schemas: { Half: { properties: { example: { $ref: '#/components/schemas/Gone' } } } } },
});

it('a $ref that leads nowhere is a warning in a body that is not validated, and a problem in one that is', async () => {
  const schema = { $ref: '#/components/schemas/Half', examples: [{ $ref: '#/nowhere' }] };
  expect(await warningsOf({}, { 'openapi.yaml': document(schema, 'parameters') })).toEqual([
    'openapi.yaml:36: warning: components.schemas.Half.properties.example["$ref"]: "#/components/schemas/Gone" cannot be resolved',
  ]);
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  await writeFile(join(dirname(file), 'openapi.yaml'), JSON.stringify(document(schema, 'body')));
  const { failure } = await runHere(() => check({ config: file }));
  expect(failure).toMatch(/"#\/components\/schemas\/Gone" cannot be resolved$/);
  expect(failure).not.toContain('weir://');
});

it('a document with webhooks only is valid; without `unlisted: charge` it is a warning', async () => {
  const webhooks = { 'openapi.yaml': { openapi: '3.1.0', info: { title: 'a', version: '1' }, webhooks: {} } };
  expect(await warningsOf({}, webhooks)).toEqual([]);
  const operations = { openapi: 'openapi.yaml', unlisted: 'reject' };
  expect(await warningsOf({ settings: { operations } }, webhooks)).toEqual([
    'weir.yaml: warning: operations: lists no operation, and unlisted is reject: every request gets a 404',
  ]);
});

it('weir start logs the same warnings', async () => {
  const limits = { accounts: { acct_9: { 'account-read': 50 } } };
  const weir = await startWeir({ upstreamUrl: 'http://127.0.0.1:1', limits });
  const warnings = weir.lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
  await weir.close();
  expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringContaining('accounts.acct_9: is not in ')]);
});
