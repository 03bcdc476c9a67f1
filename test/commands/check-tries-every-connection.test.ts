import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createDatabase } from '../../platform/test/fixtures/postgres.ts';
import { check } from '../../src/commands/check/check.ts';
import { makeCertificate } from '../fixtures/certificate.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { introspectionSettings, jwtSettings, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startSentinel } from '../fixtures/redis-sentinel.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { type CommandHere, runHere, runWeirHere } from '../fixtures/run-here.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const postgresUrl = inject('postgresUrl');

async function upstreamUrl(): Promise<string> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  return upstream.url;
}

async function issuer(): Promise<TestIssuer> {
  const started = await startIssuer();
  onTestFinished(() => started.close());
  return started;
}

async function redis(...args: string[]): Promise<RedisServer> {
  const started = await startRedisServer({ args });
  onTestFinished(() => started.stop());
  return started;
}

/** A deadline that no busy machine exceeds. */
const store = (url: string, more: object = {}) => ({
  kind: 'redis',
  url,
  keyPrefix: uniquePrefix(),
  deadlineMs: 5000,
  ...more,
});

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function connect(
  settings: Record<string, unknown>,
  {
    url,
    storeSettings,
    limits = {},
  }: { url?: string; storeSettings?: Record<string, unknown>; limits?: object } = {},
): Promise<CommandHere> {
  const config = await writeConfiguration({
    upstreamUrl: url ?? (await upstreamUrl()),
    settings,
    limits: { ...limits },
    ...(storeSettings === undefined ? {} : { store: storeSettings }),
  });
  return runHere(() => check({ config, connect: true }));
}

/** The lines about connections: those after the summary of the files. */
const linesOf = ({ stdout }: Pick<CommandHere, 'stdout'>) => stdout.trimEnd().split('\n').slice(1);

it('reports each connection that works, and exits 0', async () => {
  const { url, jwksUrl } = await issuer();
  const directory = { kind: 'http', url: `${url}/accounts/{account}` };
  const result = await connect(jwtSettings({ jwksUrl }, { directory }), {
    storeSettings: store(sharedRedisUrl()),
  });
  expect(result.failure).toBeUndefined();
  expect(linesOf(result)).toEqual([
    expect.stringMatching(/^store redis:\S+: counts; the fastest call took \d+\.\d ms$/),
    expect.stringMatching(/^upstream http:\S+: answers HEAD \/ with \d+$/),
    `keys ${jwksUrl}: answers with a key set`,
    `directory ${url}/accounts/{account}: answers, and does not know a made-up Account`,
  ]);
});

it('names the store without its password, whatever characters that has', async () => {
  const { url } = await redis('--requirepass', `it's <one>"`);
  const config = await writeConfiguration({
    upstreamUrl: await upstreamUrl(),
    store: store(url.replace('//', `//:it's%20<one>"@`)),
  });
  const { stdout } = await runWeirHere(['check', '--connect', '--config', config]);
  expect(linesOf({ stdout })[0]).toMatch(/^store redis:\/\/\*\*\*@127\.0\.0\.1:\d+: counts/);
});

it('tests no connection without --connect', async () => {
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const result = await runHere(() => check({ config }));
  expect([result.failure, linesOf(result)]).toEqual([undefined, []]);
});

it('prints no stack of a Sentinel that does not answer, as long as another does', async () => {
  const { sentinelUrls, stop } = await startSentinel();
  onTestFinished(stop);
  const sentinels = ['redis://127.0.0.1:1', ...sentinelUrls];
  const config = await writeConfiguration({
    upstreamUrl: await upstreamUrl(),
    store: { kind: 'sentinel', name: 'weir-test', sentinels, deadlineMs: 5000 },
  });
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  const { stdout } = await runWeirHere(['check', '--config', config, '--connect']);
  expect(linesOf({ stdout })[0]).toMatch(/^store weir-test of .*: .*min-replicas-to-write is 0/);
  expect(printed.mock.calls).toEqual([]);
});

it('reports every failure together, and exits 1', async () => {
  // Nothing listens on port 1, whatever other tests do meanwhile.
  const [dead, other, gone] = ['127.0.0.1:1', '127.0.0.2:1', '127.0.0.3:1'];
  const config = await writeConfiguration({
    upstreamUrl: `http://${dead}`,
    store: store(`redis://${other}`),
    settings: {
      upstream: { url: `http://${dead}`, routes: [{ prefix: '/v3/search', url: `http://${gone}` }] },
    },
  });
  const { code, stdout, stderr } = await runWeirHere(['check', '--connect', '--config', config]);
  expect([code, stderr]).toEqual([1, '3 of 3 connections failed.\n']);
  expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
    `store redis://${other}: failed: disconnected (connect ECONNREFUSED ${other})`,
    `upstream http://${dead}: failed: connect ECONNREFUSED ${dead}`,
    `upstream /v3/search http://${gone}: failed: connect ECONNREFUSED ${gone}`,
  ]);
});

describe('the store', () => {
  it('a wrong password', async () => {
    const { url } = await redis('--requirepass', 'right');
    const result = await connect({}, { storeSettings: store(url, { password: 'zq-wrong' }) });
    expect(linesOf(result)[0]).toMatch(/^store redis:\S+: failed: auth \(WRONGPASS .*\)$/);
    expect(result.failure).toBe('1 of 2 connections failed.');
    expect(result.stdout).not.toContain('zq-wrong');
  });

  it('a Redis that answers a charge with an error', async () => {
    const { port, url } = await redis();
    const admin = new Redis(port);
    onTestFinished(() => admin.disconnect());
    await admin.config('SET', 'maxmemory', '1');
    const { stdout } = await connect({}, { storeSettings: store(url) });
    expect(stdout).toContain("failed: oom (OOM command not allowed when used memory > 'maxmemory'");
  });

  it('a node of a Cluster as a single Redis', async () => {
    const { urls, stop } = await startRedisCluster();
    onTestFinished(stop);
    const lines: string[] = [];
    for (const url of urls) lines.push((await connect({}, { storeSettings: store(url) })).stdout);
    expect(lines.join('')).toMatch(/failed: redirected \(MOVED \d+ 127\.0\.0\.1:\d+\)/);
  });

  it('a user without write permission', async () => {
    const { url } = await redis('--user', ...'reader on >secret ~* &* +@all -@write'.split(' '));
    const result = await connect(
      {},
      {
        storeSettings: store(url, { username: 'reader', password: 'secret' }),
      },
    );
    expect(linesOf(result)[0]).toMatch(/^store redis:\S+: failed: auth/);
  });

  it('warns of a Redis that can evict buckets', async () => {
    const { url } = await redis('--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru');
    const result = await connect({}, { storeSettings: store(url) });
    expect(linesOf(result)[0]).toMatch(/^store redis:\S+: warning: maxmemory-policy is allkeys-lru/);
    expect(result.failure).toBeUndefined();
  });

  it.each([
    { windowSeconds: 3600, args: [], warning: undefined },
    {
      windowSeconds: 3601,
      args: [],
      warning: /^store redis:\S+: warning: Redis keeps nothing on disk .* 3601 s of counts/,
    },
    { windowSeconds: 86_400, args: ['--appendonly', 'yes'], warning: undefined },
    { windowSeconds: 86_400, args: ['--save', '3600', '1'], warning: undefined },
  ])(
    'warns of a Redis that forgets a long window: $windowSeconds s, $args',
    async ({ windowSeconds, args, warning }) => {
      const { url } = await redis(...args);
      const result = await connect({}, { storeSettings: store(url), limits: { windowSeconds } });
      expect(linesOf(result)[0]).toMatch(warning ?? /^store redis:\S+: counts/);
    },
  );

  it.each([
    { durable: true, line: /^store redis:\S+: counts/ },
    { durable: false, line: /a restart forgets up to 7 days of counts/ },
  ])(
    'warns of a Redis that forgets only what no journal puts back: durable $durable',
    async ({ durable, line }) => {
      const { url } = await redis();
      const limits = {
        windowSeconds: 86_400,
        limits: { week: { per: 'account', points: 1_000, window: '7d', durable } },
      };
      const journal = { url: 'postgres://weir@127.0.0.1:1/weir' };
      const result = await connect({ journal }, { storeSettings: store(url), limits });
      expect(linesOf(result)[0]).toMatch(line);
    },
  );

  it.each([
    { journal: {}, line: /^store redis:\S+: counts/ },
    { journal: { url: 'postgres://weir@127.0.0.1:1/weir' }, line: /: warning: INFO shows no master_replid/ },
  ])('warns of a Redis whose failovers a journal cannot notice: $journal', async ({ journal, line }) => {
    const { url } = await redis('--user', ...'weir on >secret ~* &* +@all -info'.split(' '));
    const storeSettings = store(url, { username: 'weir', password: 'secret' });
    expect(linesOf(await connect({ journal }, { storeSettings }))[0]).toMatch(line);
  });

  it('a Cluster', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const storeSettings = {
      kind: 'cluster',
      nodes: cluster.urls,
      keyPrefix: uniquePrefix(),
      deadlineMs: 5000,
    };
    const result = await connect({}, { storeSettings });
    expect(linesOf(result)[0]).toMatch(/^store redis:\S+.*: counts/);
  });
});

describe.skipIf(postgresUrl === undefined)('the journal', () => {
  const tried = async (url: string) => {
    const [, line] = linesOf(await connect({ journal: { url } }, { storeSettings: store(sharedRedisUrl()) }));
    return line;
  };

  it('is written to, and nothing stays in it', async () => {
    const url = await createDatabase(postgresUrl ?? '');
    expect(await tried(url)).toBe('journal: writes');
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query("select from pg_tables where tablename like 'weir%'");
    await client.end();
    expect(rows).toEqual([]);
  });

  it('a database that does not exist', async () => {
    const url = new URL(postgresUrl ?? '');
    url.pathname = '/weir_missing';
    expect(await tried(url.href)).toBe('journal: failed: database "weir_missing" does not exist');
  });

  it('a server that does not answer', async () => {
    expect(await tried('postgres://weir@127.0.0.1:1/weir')).toBe(
      'journal: failed: connect ECONNREFUSED 127.0.0.1:1',
    );
  });
});

describe('the upstream', () => {
  it('a server that is not HTTP', async () => {
    const server = createTcpServer((socket) => socket.end('-ERR unknown command\r\n'));
    const result = await connect({}, { url: `http://${await listening(server)}` });
    expect(linesOf(result)[1]).toContain(': failed: what it answers is not HTTP');
  });

  it('a Redis that does not speak TLS', async () => {
    const server = createTcpServer((socket) => socket.end('-ERR Protocol error\r\n'));
    const storeSettings = { kind: 'redis', url: `rediss://${await listening(server)}` };
    const result = await connect({}, { storeSettings, url: 'http://127.0.0.1:1' });
    expect(linesOf(result)[0]).toMatch(
      /\(it does not speak TLS, so store\.url may have to begin with redis:, without store\.tls\)$/,
    );
  });

  it('a server that does not speak TLS', async () => {
    const server = createServer((_request, response) => response.end());
    const result = await connect({}, { url: `https://${await listening(server)}` });
    expect(linesOf(result)[1]).toMatch(
      /: failed: it does not speak TLS, so its URL may have to begin with http:$/,
    );
  });

  it('something that closes the connection', async () => {
    const server = createTcpServer((socket) => socket.resume().once('data', () => socket.destroy()));
    const result = await connect({}, { url: `http://${await listening(server)}` });
    expect(linesOf(result)[1]).toContain(': failed: the connection was closed before an answer');
  });

  it('an upstream that is not ready is a warning', async () => {
    const server = createServer((_request, response) => response.writeHead(503).end());
    const result = await connect({}, { url: `http://${await listening(server)}/base` });
    expect(linesOf(result)[1]).toContain(': warning: answers HEAD /base with 503');
  });

  it('a certificate that only the caFile trusts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-check-'));
    const [caFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    makeCertificate(caFile, keyFile);
    const [cert, key] = await Promise.all([readFile(caFile), readFile(keyFile)]);
    const url = `https://${await listening(createTlsServer({ cert, key }, (_request, response) => response.end()))}`;
    expect(linesOf(await connect({}, { url }))[1]).toContain(
      `upstream ${url}: failed: self-signed certificate`,
    );
    const trusting = await connect({ upstream: { url, tls: { caFile } } });
    expect(linesOf(trusting)[1]).toBe(`upstream ${url}: answers HEAD / with 200`);
  });
});

describe('providers', () => {
  it('wrong credentials of the gateway at the introspection endpoint', async () => {
    const provider = await issuer();
    provider.failWith = 401;
    const result = await connect(introspectionSettings(provider));
    expect(linesOf(result)[2]).toBe(`introspection ${provider.url}/introspect: failed: answered 401`);
  });

  it('a made-up token is refused', async () => {
    const provider = await issuer();
    const result = await connect(introspectionSettings(provider));
    expect(linesOf(result)[2]).toMatch(/: accepts the credentials, and refuses a made-up token$/);
  });

  it('invalid keys', async () => {
    const { url } = await issuer();
    const result = await connect(jwtSettings({ jwksUrl: `${url}/introspect` }));
    expect(linesOf(result)[2]).toBe(`keys ${url}/introspect: failed: the answer is not a key set`);
  });

  it('a directory that refuses the token of the gateway', async () => {
    const provider = await issuer();
    provider.failWith = 403;
    const directory = { kind: 'http', url: `${provider.url}/accounts/{account}`, token: 'zq-token' };
    const jwksUrl = `${provider.jwksUrl}?key=zq-token`;
    const result = await connect(jwtSettings({ jwksUrl }, { directory }));
    expect(linesOf(result).slice(2)).toEqual([
      `keys ${provider.jwksUrl}: failed: answered 403`,
      `directory ${provider.url}/accounts/{account}: failed: answered 403`,
    ]);
    expect(result.stdout).not.toContain('zq-token');
  });
});
