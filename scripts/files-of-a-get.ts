/**
 * Counts the files of `src` in which a plain GET runs, and their functions: `tsx scripts/files-of-a-get.ts redis://127.0.0.1:6379`, or
 * without a URL for the store in memory alone. V8's precise coverage observes several requests on a warm connection. What runs in
 * only some of them, such as a timer, is left out. The report goes to standard error, because the gateway logs to standard output.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { readConfiguration } from '../src/process/configuration.ts';
import { runGateway } from '../src/process/run.ts';

const WARM_UP_REQUESTS = 20;
const OBSERVED_REQUESTS = 50;
const SOURCE = new URL('../src/', import.meta.url).href;
/** tsx adds it to each file. */
const ADDED = '__name';

const upstream = createServer((_, response) => {
  response.setHeader('content-type', 'application/json').end('{"ok":true}');
});
upstream.listen(0, '127.0.0.1');
await once(upstream, 'listening');
const upstreamPort = (upstream.address() as AddressInfo).port;
await count('memory', { kind: 'memory' });
const [redisUrl] = process.argv.slice(2);
if (redisUrl !== undefined) {
  const keyPrefix = `files-${randomUUID().slice(0, 8)}`;
  // A request that the store decides too late runs elsewhere.
  await count('Redis', { kind: 'redis', url: redisUrl, keyPrefix, deadlineMs: 5_000 });
}
upstream.close();

/** Runs a gateway with this store, and reports what a GET runs in. */
async function count(name: string, store: object): Promise<void> {
  const folder = writeConfiguration(store);
  const gateway = await runGateway(await readConfiguration(join(folder, 'weir.yaml'), {}));
  try {
    report(name, await observe(`${gateway.url}`));
  } finally {
    await gateway.close();
    rmSync(folder, { recursive: true });
  }
}

function writeConfiguration(store: object): string {
  const made = mkdtempSync(join(tmpdir(), 'weir-files-'));
  const files = {
    'weir.yaml': {
      baseUrl: 'http://a.test',
      listen: { host: '127.0.0.1', port: 0 },
      admin: { host: '127.0.0.1', port: 0 },
      upstream: { url: `http://127.0.0.1:${upstreamPort}` },
      store,
      identity: { kind: 'static', file: 'identities.yaml' },
      operations: { list: [], unlisted: 'charge' },
      limits: { file: 'limits.yaml' },
    },
    'identities.yaml': {
      tokens: { t1: 'svc_1' },
      principals: { svc_1: { type: 'ServiceAccount', account: 'acct_1' } },
      accounts: { acct_1: { organization: 'org_1' } },
    },
    'limits.yaml': { windowSeconds: 1 },
  };
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(made, name), JSON.stringify(content));
  return made;
}

/** The functions that ran in each of several requests: `file function`. */
async function observe(gatewayUrl: string): Promise<ReadonlySet<string>> {
  const socket = connect(Number(new URL(gatewayUrl).port), '127.0.0.1');
  await once(socket, 'connect');
  const get = async () => {
    const path = `/items/${Math.floor(1e6 * Math.random())}`;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t1\r\n\r\n`);
    const [bytes] = await once(socket, 'data');
    if (!`${bytes}`.startsWith('HTTP/1.1 200 ')) throw new Error(`the gateway answered ${bytes}`);
    await setImmediate();
  };
  for (let i = 0; i < WARM_UP_REQUESTS; i++) await get();
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  let common: ReadonlySet<string> | undefined;
  for (let i = 0; i < OBSERVED_REQUESTS; i++) {
    await session.post('Profiler.takePreciseCoverage');
    await get();
    const run = await functionsRun(session);
    common = new Set([...run].filter((one) => common === undefined || common.has(one)));
  }
  session.disconnect();
  socket.destroy();
  return common ?? new Set();
}

/** The functions that ran since coverage was last taken. */
async function functionsRun(session: Session): Promise<ReadonlySet<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const run = result
    .filter(({ url }) => url.startsWith(SOURCE))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ functionName, ranges }) => {
          return functionName !== '' && functionName !== ADDED && (ranges[0]?.count ?? 0) > 0;
        })
        .map(({ functionName, ranges }) => {
          return `${url.slice(SOURCE.length)} ${functionName} ${ranges[0]?.startOffset}`;
        }),
    );
  return new Set(run);
}

function report(name: string, functions: ReadonlySet<string>): void {
  const counts = new Map<string, number>();
  for (const one of functions) {
    const [file = ''] = one.split(' ');
    counts.set(file, (counts.get(file) ?? 0) + 1);
  }
  console.error(`${name}: ${counts.size} files, ${functions.size} functions`);
  for (const [file, count] of [...counts].sort()) console.error(`${count}`.padStart(4), file);
}
