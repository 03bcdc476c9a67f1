import { describe, expect, test } from 'vitest';
import { ConfigError, formatProblem } from '../../../src/config/problem.ts';
import type { Environment } from '../../../src/config/reader/environment.ts';
import { parse } from '../../../src/config/reader/parse-file.ts';
import { settingsSchema } from '../../../src/config/settings/settings.ts';

const read = (text: string, env: Environment = {}) => parse(settingsSchema, text, 'weir.yaml', env).value;

function problemsOf(text: string, env: Environment = {}): string[] {
  try {
    read(text, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
  return [];
}

describe('the settings of weir.yaml', () => {
  test('a variable can list several documents, and the cost of unlisted operations is a mapping', () => {
    const env = { WEIR_OPERATIONS_OPENAPI: 'a.yaml, b.yaml' };
    const { operations } = parse(
      settingsSchema,
      'operations: { unlisted: { cost: 2 } }',
      'weir.yaml',
      env,
    ).value;
    expect(operations).toMatchObject({ openapi: ['a.yaml', 'b.yaml'], unlisted: { cost: 2 } });
    expect(() => parse(settingsSchema, 'operations: { unlisted: { costs: 2 } }', 'weir.yaml')).toThrow(
      'weir.yaml:1: operations.unlisted.costs: unknown key "costs": did you mean "cost"?',
    );
  });

  test('a secret of a wrong form is not shown, and the message names the form', () => {
    expect(problemsOf('admin: { token: sh0rt }')).toEqual([
      'weir.yaml:1: admin.token: must be 16 characters or more, without spaces, is something else, which is not shown because it is a secret',
    ]);
  });

  test('the message about a key of a wrong form says what a key looks like', () => {
    expect(problemsOf('log: { fields: { region: eu } }')).toEqual([
      'weir.yaml:1: log.fields.region: the name must have a `.`, `_` or `-` between letters or digits, such as cloud.region',
    ]);
  });

  test('a banner of number signs is a comment, and parsed quickly', () => {
    const banner = `${'#'.repeat(100)}\n# weir #\n`;
    expect(parse(settingsSchema, banner, 'weir.yaml').value.admin.port).toBe(9090);
    expect(parse(settingsSchema, `${banner}admin: { port: 1 }\n`, 'weir.yaml').value.admin.port).toBe(1);
  });

  test('an empty file gives every default', () => {
    expect(read('')).toEqual({
      baseUrl: 'http://localhost:8080',
      listen: {
        host: '0.0.0.0',
        port: 8080,
        trustedProxies: [],
        maxConnections: 10_000,
        maxHeaderBytes: 16_384,
        maxHeaderFields: 128,
        maxBodyBytes: 268_435_456,
        headersTimeoutMs: 10_000,
        bodyTimeoutMs: 30_000,
        requestTimeoutMs: 300_000,
        sendTimeoutMs: 60_000,
        keepAliveTimeoutMs: 72_000,
        halfClose: 'abort',
        maxEventLoopDelayMs: 1_000,
      },
      admin: { host: '127.0.0.1', port: 9090 },
      credentials: [],
      decisions: {
        host: '127.0.0.1',
        trusted: ['127.0.0.0/8', '::1'],
        deniedStatus: 429,
        extAuthzPrefix: '/ext-authz',
      },
      cors: { origins: [], preflight: 'answer', maxAgeSeconds: 600 },
      upstream: {
        url: 'http://127.0.0.1:3000',
        host: 'upstream',
        routes: [],
        pathProfile: {
          case: 'insensitive',
          trailingSlash: 'same',
          duplicateSlashes: 'refuse',
          matrixParameters: 'refuse',
          asciiForms: 'refuse',
        },
        connections: 512,
        unauthenticatedPercent: 5,
        publicPercent: 50,
        tunnelPercent: 50,
        maxWaiting: 1024,
        reservePercent: 10,
        queueTimeoutMs: 5_000,
        concurrency: 'fixed',
        bodyBufferBytes: 65_536,
        connectTimeoutMs: 5_000,
        headersTimeoutMs: 60_000,
        bodyTimeoutMs: 300_000,
        tunnelIdleTimeoutMs: 300_000,
        keepAliveTimeoutMs: 4_000,
      },
      shutdown: { drainDelaySeconds: 5, graceSeconds: 30 },
      store: {
        kind: 'memory',
        keyPrefix: 'weir',
        deadlineMs: 25,
        onStoreFailure: 'serve',
        expectedReplicas: 1,
      },
      identity: { kind: 'static', file: 'identities.yaml' },
      operations: {
        list: [],
        unlisted: 'charge',
        undeclaredQuery: 'reject',
        maxCost: 10,
        refundOn: [],
        maxBodyBytes: 262_144,
      },
      limits: { file: 'limits.yaml', overrides: [], fields: 'contract' },
      usage: { requestsPerMinute: 60 },
      journal: { flushMs: 1_000 },
      notifications: { log: false, allowPrivate: false },
      kubernetes: { watch: [], credentialsFolder: '/var/run/secrets/kubernetes.io/serviceaccount' },
      metrics: { http: false },
      log: { level: 'info', access: true, fields: {} },
    });
  });

  test('a section without content is the section with its defaults', () => {
    expect(read('listen:\nstore:\n')).toEqual(read(''));
  });

  test('all problems are reported together, each with its line, path and hint', () => {
    const text = `listen:
  prot: 1
  port: "80"
store: { kind: rediss }
identity: { kind: static, fle: x }
admin: 3
operations: { unlisted: chrge }
baseUrl: ftp://x
`;
    expect(problemsOf(text)).toEqual([
      'weir.yaml:8: baseUrl: must be an http:// or https:// URL without a query, is "ftp://x"',
      'weir.yaml:2: listen.prot: unknown key "prot": did you mean "port"?',
      'weir.yaml:3: listen.port: must be a whole number from 0 to 65535, or off, is "80"',
      'weir.yaml:6: admin: must be a mapping, is 3',
      'weir.yaml:4: store.kind: must be memory, redis, cluster or sentinel, is "rediss": did you mean "redis"?',
      'weir.yaml:5: identity.fle: unknown key "fle": did you mean "file"?',
      'weir.yaml:7: operations.unlisted: must be charge, reject or a mapping such as {cost: 2}, is "chrge"',
    ]);
  });

  test('a union is checked only against the variant selected by its kind', () => {
    expect(problemsOf('store: { kind: sentinel, sentinels: ["redis://a"], nodes: [] }')).toEqual([
      'weir.yaml:1: store.nodes: is a setting of kind cluster: kind is sentinel',
      'weir.yaml:1: store.name: is missing: expected text that is not empty',
    ]);
  });

  test('a store without a kind is of the default kind, unless it has settings of another', () => {
    expect(read('store: { deadlineMs: 5 }').store).toMatchObject({ kind: 'memory', deadlineMs: 5 });
    expect(read('store: {}', { WEIR_STORE_DEADLINE_MS: '6' }).store).toMatchObject({ deadlineMs: 6 });
    expect(read('store: { deadlineMs: 5 }', { WEIR_REDIS_URL: 'redis://a' }).store.kind).toBe('redis');
    expect(problemsOf('store: { deadlineMs: 25ms }')).toEqual([
      'weir.yaml:1: store.deadlineMs: must be a whole number from 1 to 60000, is "25ms"',
    ]);
    expect(problemsOf('store: { url: "redis://a" }')).toEqual([
      'weir.yaml:1: store.kind: is missing: name one of memory, redis, cluster or sentinel: url is a setting of redis',
    ]);
  });

  test.each([
    ['redis://redis:6379?db=2', ''],
    ['redis://redis:6379#2', ''],
    ['redis://:pass@redis:6379/2/', ''],
    ['redis://:pa/ss@redis', ': percent-encode special characters in a password, such as %23 for #'],
    ['redis://:pa#ss@redis', ': percent-encode special characters in a password, such as %23 for #'],
    ['redis://:pa%ss@redis', ': percent-encode special characters in a password, such as %23 for #'],
  ])('%s is no URL of a Redis', (url, hint) => {
    expect(problemsOf(`store: { kind: redis, url: "${url}" }`)).toEqual([
      `weir.yaml:1: store.url: must be a redis:// or rediss:// URL without a query, is something else, which is not shown because it is a secret${hint}`,
    ]);
  });

  test.each(['weir:pa#ss@db/weir', 'weir:pa%ss@db/weir', 'weir@db:99999/weir'])(
    'a journal at postgres://%s cannot be reached',
    (rest) => {
      expect(problemsOf(`journal: { url: "postgres://${rest}" }`)).toEqual([
        'weir.yaml:1: journal.url: must be a postgres:// URL, is something else, which is not shown because it is a secret: percent-encode special characters in a password, such as %23 for #',
      ]);
    },
  );

  test.each(['postgres://weir:pa%23ss@db:5432/weir', 'postgresql:///weir?host=/run/postgresql'])(
    'a journal may be at %s',
    (url) => {
      expect(read(`journal: { url: "${url}" }`).journal.url).toBe(url);
    },
  );

  test.each([
    ['store: { kind: memory\nlisten:\n  port: 80\n', 1, '{'],
    ['store: { kind: memory\n\n\n', 1, '{'],
    ['a: |\n  { text\nb: # {\n  c: [1, "]"\nd: 3\n', 4, '['],
    ["a: it's {\nb: { c: it's }\nd: { e: {}\n", 3, '{'],
    ['{\n  "a": { "b": 1 },\n  "c": [1\n', 3, '['],
    ['a: 1\nb: "two\nc: 3\n', 2, '"'],
  ])('a bracket or quote that is not closed is reported where it was opened: %j', (text, line, opener) => {
    expect(problemsOf(text)).toEqual([`weir.yaml:${line}: is not valid YAML: the ${opener} is not closed`]);
  });

  test.each(['http://127.0.0.1', '127.0.0.1:8080', '[::1]', '*', ' ', 'ab:80'])(
    'a port does not listen on %j, which is neither a name nor an address',
    (host) => {
      expect(problemsOf(`admin: { host: "${host}" }`)).toEqual([
        `weir.yaml:1: admin.host: must be a host name or address, is "${host}"`,
      ]);
    },
  );

  test.each(['localhost', 'gw-1.example.com', '10.0.0.1', '::', '::1', 'fe80::1%eth0', '::ffff:10.0.0.1'])(
    'a port may listen on %s',
    (host) => {
      expect(read(`listen: { host: "${host}" }`).listen.host).toBe(host);
    },
  );

  test('a password is never shown', () => {
    const [problem, ...others] = problemsOf(
      'store: { kind: redis, url: "http://user:hunter2@x", password: 12 }',
    );
    expect([problem, ...others]).toHaveLength(2);
    expect(`${problem}${others}`).not.toMatch(/hunter2|12,/);
  });

  test('keys of the object prototype are unknown keys like any other', () => {
    expect(problemsOf('{"__proto__": {"port": 1}, "constructor": 1}')).toHaveLength(2);
  });
});

describe('environment variables', () => {
  test('override the file', () => {
    const settings = read('listen: { port: 1 }', {
      WEIR_PORT: '0',
      WEIR_HOST: '127.0.0.1',
      WEIR_ADMIN_PORT: '9',
      WEIR_ADMIN_HOST: '::1',
      WEIR_UPSTREAM_URL: 'https://up',
      WEIR_BASE_URL: 'https://api',
      WEIR_LOG_LEVEL: 'debug',
      WEIR_LOG_ACCESS: 'false',
      WEIR_STORE_DEADLINE_MS: '50',
    });
    expect(settings).toMatchObject({
      baseUrl: 'https://api',
      listen: { port: 0, host: '127.0.0.1' },
      admin: { port: 9, host: '::1' },
      upstream: { url: 'https://up' },
      store: { kind: 'memory', deadlineMs: 50 },
      log: { level: 'debug', access: false },
    });
  });

  test('an empty variable counts as not set', () => {
    expect(read('listen: { port: 1 }', { WEIR_PORT: '' }).listen.port).toBe(1);
  });

  test('a value that does not fit is a problem that names the variable', () => {
    expect(problemsOf('', { WEIR_PORT: 'abc' })).toEqual([
      'WEIR_PORT: listen.port: must be a whole number from 0 to 65535, or off, is "abc"',
    ]);
  });

  test('an item of a list that does not fit is a problem of the variable that has the list', () => {
    expect(
      problemsOf('cors: { origins: [] }', { WEIR_CORS_ORIGINS: 'https://a.example,https://B/' }),
    ).toEqual([expect.stringMatching(/^WEIR_CORS_ORIGINS: cors\.origins\.1: must be an origin/)]);
  });

  test('a mapping is written as in the file where a setting takes one, and lists of mappings have no variable', () => {
    const unlisted = (text: string) => read('', { WEIR_OPERATIONS_UNLISTED: text }).operations.unlisted;
    expect([unlisted('{ cost: 2 }'), unlisted('{"cost": 3}'), unlisted('reject')]).toEqual([
      { cost: 2 },
      { cost: 3 },
      'reject',
    ]);
    expect(problemsOf('', { WEIR_OPERATIONS_UNLISTED: '{ cost: 0 }' })).toEqual([
      expect.stringMatching(/^WEIR_OPERATIONS_UNLISTED: operations\.unlisted\.cost: must be a whole number/),
    ]);
    expect(problemsOf('', { WEIR_OPERATIONS_UNLISTED: '{ cost: 2' })).toEqual([
      expect.stringMatching(/^WEIR_OPERATIONS_UNLISTED: operations\.unlisted: must be charge/),
    ]);
    expect(read('', { WEIR_CREDENTIALS: 'key' }).credentials).toEqual([]);
  });

  test('a variable that Kubernetes sets for a Service named weir is explained', () => {
    expect(problemsOf('', { WEIR_PORT: 'tcp://10.0.0.1:80' })).toEqual([
      expect.stringContaining('enableServiceLinks: false'),
    ]);
  });

  test('WEIR_REDIS_URL turns a memory store into a Redis store and keeps its other settings', () => {
    const env = { WEIR_REDIS_URL: 'redis://r:6379', WEIR_STORE_PASSWORD: 'secret' };
    expect(read('store: { kind: memory, keyPrefix: mine }', env).store).toEqual({
      kind: 'redis',
      url: 'redis://r:6379',
      password: 'secret',
      keyPrefix: 'mine',
      deadlineMs: 25,
      onStoreFailure: 'serve',
      expectedReplicas: 1,
    });
    expect(read('', env).store.kind).toBe('redis');
    expect(read('store: { kind: redis, url: "redis://other" }', env).store).toMatchObject({
      url: 'redis://r:6379',
    });
  });

  test('WEIR_REDIS_URL together with a cluster is an error', () => {
    expect(
      problemsOf('store: { kind: cluster, nodes: ["redis://a"] }', { WEIR_REDIS_URL: 'redis://r' }),
    ).toEqual([
      'weir.yaml:1: store.kind: is cluster, but WEIR_REDIS_URL is set: unset WEIR_REDIS_URL, or set kind to redis',
    ]);
  });

  test('a whole store can come from the environment', () => {
    const env = { WEIR_STORE_KIND: 'cluster', WEIR_STORE_NODES: 'redis://a:1, redis://b:2' };
    expect(read('', env).store).toMatchObject({ kind: 'cluster', nodes: ['redis://a:1', 'redis://b:2'] });
    expect(problemsOf('', { WEIR_STORE_KIND: 'clutser' })).toEqual([
      'WEIR_STORE_KIND: store.kind: must be memory, redis, cluster or sentinel, is "clutser": did you mean "cluster"?',
    ]);
  });

  test('a setting that has been renamed is refused with its new name, in a file or a variable', () => {
    expect(problemsOf('upstream: { others: [] }')).toEqual([
      'weir.yaml:1: upstream.others: "others" has been renamed: use "routes"',
    ]);
    const jwt = 'identity: { kind: jwt, issuer: i, audience: a, jwksUrl: "https://i.test/keys" }';
    expect(problemsOf(jwt, { WEIR_IDENTITY_VERIFIED_SECONDS: '5' })).toEqual([
      expect.stringContaining(
        'the variable WEIR_IDENTITY_VERIFIED_SECONDS has been renamed: use WEIR_IDENTITY_CACHE_SECONDS',
      ),
    ]);
  });
});
