import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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

const PARTNER = {
  tokens: { key: 'svc_partner' },
  principals: { svc_partner: { type: 'ServiceAccount', account: 'acct_partner' } },
  accounts: { acct_partner: {} },
};
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

it('an override is unknown only if every identities file would have its owner', async () => {
  const limits = {
    accounts: {
      acct_1: { 'account-read': 50 },
      acct_partner: { 'account-read': 50 },
      acct_33: { 'account-read': 50 },
    },
    principals: { person_1: { 'person-read': 50 }, person_9: { 'person-read': 50 } },
  };
  const found = async (settings: object) =>
    (await warningsOf({ limits, settings: settings as Record<string, unknown> }, { 'partner.json': PARTNER }))
      .map((line) => line.replace(/^limits\.yaml:\d+: warning: /, ''))
      .map((line) => line.replace(/: did you mean .*/, ''));
  const jwt = { kind: 'jwt', jwksUrl: 'https://id.example.com/keys', issuer: 'x', audience: 'y' };
  const directory = { kind: 'file', file: 'identities.yaml' };
  expect(await found({ identity: { ...jwt, directory } })).toEqual([
    'accounts.acct_partner: is not in identities.yaml',
    'accounts.acct_33: is not in identities.yaml',
  ]);
  const partner = {
    kind: 'header',
    name: 'X-Partner-Key',
    identity: { kind: 'static', file: 'partner.json' },
  };
  const both = 'is not in identities.yaml or partner.json';
  expect(await found({ credentials: [partner] })).toEqual([
    `accounts.acct_33: ${both}`,
    `principals.person_9: ${both}`,
  ]);
  expect(await found({ credentials: [{ ...partner, identity: jwt }] })).toEqual([]);
  expect(await found({ credentials: [{ kind: 'header', name: 'X-Api-Key' }] })).toEqual([
    'accounts.acct_partner: is not in identities.yaml',
    'accounts.acct_33: is not in identities.yaml',
    'principals.person_9: is not in identities.yaml',
  ]);
});

it('a limit on concurrent requests does not apply to decisions for other proxies', async () => {
  const limits = { limits: { 'in-flight': { per: 'account', concurrent: 5 } } };
  expect(await warningsOf({ limits })).toEqual([]);
  expect(await warningsOf({ limits, settings: { decisions: { port: 0 } } })).toEqual([
    expect.stringMatching(
      /^limits\.yaml:\d+: warning: limits\.in-flight: applies to decisions only if programs hold them, because other proxies do not report the end of a request$/,
    ),
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

it('an empty limits file is a warning, and {} is not', async () => {
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const limits = join(dirname(file), 'limits.yaml');
  await writeFile(limits, '# nothing\n');
  const { stderr } = await runHere(() => check({ config: file }));
  expect(stderr).toBe(`${limits}: warning: is empty: Weir's defaults apply: write {} if this is meant\n`);
  await writeFile(limits, '{}');
  expect((await runHere(() => check({ config: file }))).stderr).toBe('');
});

it('a plan of an Account that the limits do not have is a warning', async () => {
  const accounts = { acct_1: { plan: 'busines' }, acct_2: { plan: 'business' }, acct_3: {} };
  const identities = {
    tokens: { t: 'svc_1' },
    principals: { svc_1: { type: 'ServiceAccount', account: 'acct_1' } },
    accounts,
  };
  expect(await warningsOf({ identities, limits: { plans: { business: { 'account-read': 50 } } } })).toEqual([
    'identities.yaml: warning: accounts.acct_1.plan: the limits have no plan busines: the defaults apply: did you mean "business"?',
  ]);
});

it('a variable that sets nothing is a warning, unless Kubernetes sets it for a Service', async () => {
  const names = ['WEIR_PROT', 'WEIR_STORE_DEADLINE', 'WEIR_FRUIT', 'WEIR_TOKEN'];
  for (const name of names) vi.stubEnv(name, '80');
  vi.stubEnv('WEIR_GATEWAY_PORT', 'tcp://10.0.0.1:80');
  vi.stubEnv('WEIR_PORT_8080_TCP_ADDR', '10.0.0.1');
  vi.stubEnv('WEIR_SERVICE_PORT_HTTP', '80');
  vi.stubEnv('WEIR_SERVICE_HOST', '10.0.0.1');
  expect(await warningsOf({})).toEqual([
    'WEIR_FRUIT: warning: there is no such setting',
    'WEIR_PROT: warning: there is no such setting: did you mean WEIR_PORT?',
    'WEIR_STORE_DEADLINE: warning: there is no such setting: did you mean WEIR_STORE_DEADLINE_MS?',
  ]);
});

it('a variable with the path of a setting, but not its name, is a problem', async () => {
  vi.stubEnv('WEIR_LISTEN_PORT', '80');
  vi.stubEnv('WEIR_STORE_URL', 'redis://127.0.0.1');
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: { kind: 'redis' } });
  const { failure } = await runHere(() => check({ config: file }));
  expect(failure).toContain('listen.port: WEIR_LISTEN_PORT does not set it: use WEIR_PORT');
  expect(failure).toContain('store.url: WEIR_STORE_URL does not set it: use WEIR_REDIS_URL');
  vi.stubEnv('WEIR_STORE_URL', undefined);
  // Kubernetes sets it for a Service of this name.
  vi.stubEnv('WEIR_LISTEN_PORT', 'tcp://10.0.0.1:80');
  expect(await warningsOf({})).toEqual([]);
});

it('an empty weir.yaml and a missing upstream are warnings', async () => {
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const warnings = async (text: string) => {
    await writeFile(file, text);
    const { stderr } = await runHere(() => check({ config: file }));
    return stderr
      .replaceAll(`${dirname(file)}/`, '')
      .split('\n')
      .slice(0, -1);
  };
  const missing = 'upstream.url: is not set: requests go to http://127.0.0.1:3000';
  expect(await warnings('# nothing\n')).toEqual([
    'weir.yaml: warning: is empty: every setting has its default',
    `weir.yaml: warning: ${missing}`,
  ]);
  expect(await warnings('\nupstream: { connections: 10 }\n')).toEqual([`weir.yaml:2: warning: ${missing}`]);
  vi.stubEnv('WEIR_UPSTREAM_URL', 'http://127.0.0.1:1');
  expect(await warnings('upstream: { connections: 10 }')).toEqual([]);
});

it('a path for the own limits is a warning where no port serves it', async () => {
  const settings = { listen: { port: 'off' }, usage: { path: '/limits' }, decisions: { port: 0 } };
  expect(await warningsOf({ settings })).toEqual([
    expect.stringMatching(
      /^weir\.yaml:\d+: warning: usage\.path: has no effect: there is no port for clients$/,
    ),
  ]);
});

it('an admin port that others reach without a token is a warning', async () => {
  const warning =
    'weir.yaml:# warning: admin.host: is 0.0.0.0, and there is no admin.tokenFile: everything but metrics, health and the page of the console gets a 403';
  const warnings = async (admin: object) =>
    (await warningsOf({ settings: { admin: { port: 0, ...admin } } })).map((line) =>
      line.replace(/:\d+:/, ':#'),
    );
  expect(await warnings({ host: '0.0.0.0' })).toEqual([warning]);
  expect(await warnings({ host: '0.0.0.0', token: 'a-token-of-admins' })).toEqual([]);
  expect(await warnings({ host: '::1' })).toEqual([]);
});

it('a secret that another one makes useless is a warning', async () => {
  const admin = { port: 0, token: 'a-token-of-admins', tokenFile: 'token' };
  const decisions = { port: 0, token: 'a-token-of-programs', tokenFile: 'token' };
  const secret = `whsec_${'A'.repeat(32)}`;
  const secretFile = join(await mkdtemp(join(tmpdir(), 'weir-test-')), 'secret');
  await writeFile(secretFile, secret);
  const settings = { admin, decisions, notifications: { secret, secretFile } };
  const warnings = (await warningsOf({ settings })).map((line) => line.replace(/^\S+ warning: /, ''));
  expect(warnings).toEqual([
    'admin.tokenFile: has no effect: admin.token is set as well',
    'decisions.tokenFile: has no effect: decisions.token is set as well',
    'notifications.secret: has no effect: notifications.secretFile is set as well',
  ]);
});

it('a range that is written as an address within it is a warning', async () => {
  const trustedProxies = [
    '10.0.0.1/8',
    '10.0.0.0/8',
    '192.0.2.1/32',
    '2001:db8::1/64',
    '2001:DB8:0::/32',
    '::1',
  ];
  const warnings = await warningsOf({ settings: { listen: { host: '127.0.0.1', port: 0, trustedProxies } } });
  expect(warnings.map((line) => line.replace(/^\S+ warning: /, ''))).toEqual([
    'listen.trustedProxies.0: 10.0.0.1/8 is all of 10.0.0.0/8: write that, or 10.0.0.1 for one address',
    'listen.trustedProxies.3: 2001:db8::1/64 is all of 2001:db8::/64: write that, or 2001:db8::1 for one address',
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

it('a misspelled x-weir is a warning', async () => {
  const cost = { cost: 5 };
  const paths = {
    '/things': {
      'X-Weir': cost,
      get: { 'x-wier': cost, 'x-webhooks': {} },
      post: { 'x-weir': cost, xweir: cost },
    },
  };
  const openapi = { openapi: '3.1.0', info: { title: 'a', version: '1' }, 'x-wieght': 1, paths };
  const warnings = await warningsOf({}, { 'openapi.yaml': openapi });
  expect(warnings.map((line) => line.replace(/^openapi.yaml:\d+: warning: /, ''))).toEqual([
    'paths["/things"].X-Weir: is not read: did you mean "x-weir"?',
    'paths["/things"].get.x-wier: is not read: did you mean "x-weir"?',
    'paths["/things"].post.xweir: is not read: did you mean "x-weir"?',
  ]);
});

it('an x-weir that has no effect where it stands is a warning, and an example that has one is not', async () => {
  const weir = { 'x-weir': { cost: 5 } };
  const parameter = { name: 'q', in: 'query', schema: { type: 'string', ...weir }, example: weir };
  const openapi = {
    openapi: '3.1.0',
    info: { title: 'a', version: '1', ...weir },
    ...weir,
    paths: {
      ...weir,
      '/things': {
        ...weir,
        get: { ...weir, parameters: [parameter], responses: { 200: { description: 'ok', ...weir } } },
      },
      '/others': { $ref: '#/components/pathItems/Other', ...weir },
    },
    components: {
      pathItems: { Other: { ...weir, get: {} } },
      schemas: { Named: { properties: { 'x-weir': { type: 'string' } } } },
    },
  };
  const warnings = await warningsOf({}, { 'openapi.yaml': openapi });
  const where = 'is not read here: it belongs in an operation, in a path or at the root of the document';
  expect(warnings.map((line) => line.replace(/^openapi.yaml:\d+: warning: /, ''))).toEqual([
    `info.x-weir: ${where}`,
    `paths.x-weir: ${where}`,
    `paths["/things"].get.parameters.0.schema.x-weir: ${where}`,
    `paths["/things"].get.responses.200.x-weir: ${where}`,
    `paths["/others"].x-weir: ${where}`,
  ]);
});

it('an empty list of operations needs no document', async () => {
  const file = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { operations: { list: [] } },
  });
  await rm(join(dirname(file), 'openapi.yaml'));
  const { stdout, failure } = await runHere(() => check({ config: file }));
  expect([failure, stdout]).toEqual([undefined, expect.stringContaining('valid: 0 operations')]);
});

describe('a limit that a high cost may leave unused', () => {
  /** Writes that cost 1 and 100. */
  const COSTLY = {
    operations: { list: [{ method: 'POST', path: '/v3/bulk', cost: 100, id: 'bulk' }], maxCost: 100 },
  };
  const defaultsOf = (limit: number) => ({
    defaults: { 'account-write': limit, 'organization-write': 'none' },
  });
  const found = async (limits: Record<string, unknown>) =>
    (await warningsOf({ settings: COSTLY, limits })).map((line) => line.replace(/^limits\.yaml:\d+/, '#'));

  it.each([
    [500, 80],
    [600, 83],
    [999, 89],
  ])('%i points with a cost of 100: the least percentage is %i', async (limit, percent) => {
    expect(await found(defaultsOf(limit))).toEqual([
      expect.stringContaining(
        `#: warning: defaults.account-write: may admit as little as ${percent} % of its points, because the limit ${limit} is below ten times the cost 100 of operation bulk: raise the limit to at least 1000, or lower the cost at `,
      ),
    ]);
  });

  it('names a reservation', async () => {
    const reserve = { json: '/max_tokens', most: 100 };
    const operations = { list: [{ method: 'POST', path: '/bulk', cost: 4, reserve }] };
    const [warning] = await warningsOf({ settings: { operations }, limits: defaultsOf(600) });
    expect(warning).toMatch(
      /limit 600 is below ten times the 100 points that operation POST \/bulk may reserve: .*, or lower `reserve\.most` at /,
    );
  });

  it('is absent from ten times the cost on, and below 500, where the counter is an exact log', async () => {
    expect(await found(defaultsOf(1000))).toEqual([]);
    expect(await found(defaultsOf(499))).toEqual([]);
  });

  it('is no limit with a period, which is exact, and no shadow limit, which refuses nothing', async () => {
    const limits = {
      ...defaultsOf(1000),
      limits: {
        day: { per: 'account', points: 600, period: 'day' },
        minute: { per: 'account', points: 600, shadow: true, window: '1m' },
      },
      accounts: { acct_1: { 'account-write': { limit: 600, shadow: true } } },
    };
    expect(await found(limits)).toEqual([]);
  });

  it('can be one of a plan, of an override, and a further limit, of what it counts', async () => {
    const limits = {
      ...defaultsOf(1000),
      limits: {
        minute: { per: 'account', points: 500, window: '1m' },
        large: { per: 'account', points: 500, window: '1m', operations: ['bulk'] },
        calls: { per: 'account', requests: 500, window: '1m' },
      },
      plans: { pro: { 'account-write': 700 } },
      accounts: { acct_1: { 'account-write': 800 } },
    };
    expect(await found(limits)).toEqual([
      expect.stringContaining('limits.minute.points: may admit as little as 80 %'),
      expect.stringContaining('plans.pro.account-write: may admit as little as 85 %'),
      expect.stringContaining('accounts.acct_1.account-write: may admit as little as 87 %'),
    ]);
  });

  it('is shortened where many overrides have it', async () => {
    const accounts = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`acct_${index}`, { 'account-write': 500 }]),
    );
    const warnings = await warningsOf({
      settings: {
        ...COSTLY,
        identity: { kind: 'jwt', jwksUrl: 'https://id.example.com/keys', issuer: 'x', audience: 'y' },
      },
      limits: { ...defaultsOf(1000), accounts },
    });
    expect(warnings).toHaveLength(11);
    expect(warnings.at(-1)).toBe('limits.yaml: warning: 9990 more of this kind');
  });
});

it('limits that replicas share without a number of replicas are a warning', async () => {
  const store = { kind: 'redis', url: 'redis://127.0.0.1:1', onStoreFailure: 'share' };
  expect(await warningsOf({ settings: { store } })).toEqual([
    expect.stringMatching(
      /^weir\.yaml:\d+: warning: store\.expectedReplicas: is not set: each replica that starts while the store is away admits the whole of every limit$/,
    ),
  ]);
  expect(await warningsOf({ settings: { store: { ...store, expectedReplicas: 1 } } })).toEqual([]);
  expect(await warningsOf({ settings: { store: { kind: 'memory', onStoreFailure: 'share' } } })).toEqual([]);
  vi.stubEnv('WEIR_STORE_EXPECTED_REPLICAS', '4');
  expect(await warningsOf({ settings: { store } })).toEqual([]);
});

it('weir start logs the same warnings', async () => {
  const limits = { accounts: { acct_9: { 'account-read': 50 } } };
  const weir = await startWeir({ upstreamUrl: 'http://127.0.0.1:1', limits });
  const warnings = weir.lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
  await weir.close();
  expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringContaining('accounts.acct_9: is not in ')]);
});

it.each([
  [
    { kind: 'sentinel', name: 'm', sentinels: ['redis://:one@127.0.0.1:1', 'redis://:two@127.0.0.1:2'] },
    'store.sentinels: the user and password of the first URL are used for all',
  ],
  [
    { kind: 'cluster', nodes: ['redis://127.0.0.1:1/0', 'redis://127.0.0.1:2/3'] },
    'store.nodes: the number of a database has no effect: it is always 0',
  ],
])('parts of URLs that are not used are a warning: %j', async (store, warning) => {
  expect(await warningsOf({ settings: { store } })).toEqual([expect.stringContaining(`warning: ${warning}`)]);
});

it('URLs of Sentinels and nodes with one user and database 0 are no warning', async () => {
  const nodes = ['redis://u:p@127.0.0.1:1', 'redis://u:p@127.0.0.1:2/0'];
  expect(await warningsOf({ settings: { store: { kind: 'cluster', nodes } } })).toEqual([]);
  expect(
    await warningsOf({ settings: { store: { kind: 'sentinel', name: 'm', sentinels: nodes } } }),
  ).toEqual([]);
});

it.each([
  ['https://10.0.0.1/x', false, 1],
  ['https://[::1]/x', false, 1],
  ['https://[::ffff:a00:1]/x', false, 1],
  ['https://localhost/x', false, 1],
  ['https://10.0.0.1/x', true, 0],
  ['https://192.0.3.1/x', false, 0],
  ['https://hooks.example.com/x', false, 0],
])('a webhook at a private address is a warning: %s, allowPrivate %s', async (url, allowPrivate, count) => {
  const notifications = { url, allowPrivate, secret: `whsec_${'a'.repeat(43)}=` };
  const warnings = await warningsOf({ settings: { notifications } });
  expect(warnings).toHaveLength(count);
  for (const warning of warnings) expect(warning).toContain('notifications.url: is at a private address');
});

it('a value that looks like a variable is used as it is written, and is not printed', async () => {
  const admin = { port: 0, token: '$' + '{WEIR_ADMIN_TOKEN}' };
  const store = { kind: 'redis', url: 'redis://127.0.0.1:1', password: '$REDIS_PASSWORD' };
  const warnings = await warningsOf({
    settings: { admin, store, log: { fields: { 'deploy.price': '$5.00' } } },
  });
  const written = 'is used as it is written: docs/configuration.md has the variable that sets it';
  expect(warnings.map((line) => line.replace(/^weir\.yaml:\d+: warning: /, ''))).toEqual([
    `admin.token: ${written}`,
    `store.password: ${written}`,
  ]);
  vi.stubEnv('WEIR_STORE_PASSWORD', 'from-the-environment');
  expect(await warningsOf({ settings: { store } })).toEqual([]);
  const within = { kind: 'redis', url: 'redis://:$' + '{REDIS_PASSWORD:-none}@127.0.0.1:1' };
  expect(await warningsOf({ settings: { store: within } })).toEqual([
    expect.stringMatching(/store\.url: is used as it is written/),
  ]);
});

it.each([
  [
    '?sslmod=verify-full&SSLMode=require',
    [/the parameter sslmod has no effect/, /the parameter SSLMode has no/],
  ],
  ['?sslmode=verify_full', [/sslmode=verify_full is unknown: expected one of disable, .*verify-full/]],
  ['?sslmode=verify-full&sslrootcert=/ca.pem&application_name=weir', []],
  ['', []],
])('a parameter of the journal about TLS that is unknown is a warning: %s', async (query, expected) => {
  const journal = { url: `postgres://weir:hidden@db/weir${query}` };
  const warnings = await warningsOf({ settings: { journal } });
  expect(warnings).toEqual(expected.map((one) => expect.stringMatching(one)));
  expect(warnings.join()).not.toContain('hidden');
});
