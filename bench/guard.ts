/**
 * `npm run bench:guard`: fails when a request costs half as much again as it should. It compares Weir with the
 * plain proxy in one run, takes the best of several rounds, and asks for no more than Node: wide enough for a busy CI
 * machine, and narrow enough to catch an increase by half.
 */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contestant, Running } from './contestants/contestant.ts';
import { fastifyProxy } from './contestants/fastify.ts';
import { weir } from './contestants/weir.ts';
import { cpuUs } from './lab/process-table.ts';
import { AnswerReader, requestOf } from './load/answer.ts';
import { PATH } from './load/wrk.ts';
import { ACCOUNTS, FAR_ABOVE } from './measure/bench.ts';

/** CPU time per request with its access log line, in times of the plain proxy's: 0.7 and 0.36, with a spread of a fifth. */
const MAX_FORWARDED = 0.95;
const MAX_REFUSED = 0.55;

const ROUNDS = 10;
const REQUESTS = 12_000;
const CONNECTIONS = 32;
/** Few enough that nearly every request is one too many. */
const REFUSED_ACCOUNTS = 10;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

if (process.platform === 'linux') await guard();
else say('The guard reads CPU time from /proc: it checks nothing outside Linux.');

async function guard(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-guard-'));
  const upstream = await startUpstream();
  const start = (name: string, contestant: Contestant, limit: number, accounts: number): Promise<Running> => {
    const own = join(folder, name);
    mkdirSync(own);
    const scene = { folder: own, upstreamPort: upstream.port, redisPort: 0, cores: undefined };
    return contestant.start({ ...scene, limit, accounts });
  };
  const plain = await start('plain', fastifyProxy('none'), FAR_ABOVE, ACCOUNTS);
  const forwarding = await start('forwarding', weir('memory'), FAR_ABOVE, ACCOUNTS);
  const refusing = await start('refusing', weir('memory'), 1, REFUSED_ACCOUNTS);
  const best = {
    plain: Number.POSITIVE_INFINITY,
    forwarded: Number.POSITIVE_INFINITY,
    refused: Number.POSITIVE_INFINITY,
  };
  try {
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round++) {
      const spent = {
        plain: await costOf(plain, ACCOUNTS),
        forwarded: await costOf(forwarding, ACCOUNTS),
        refused: await costOf(refusing, REFUSED_ACCOUNTS),
      };
      if (round === 0) continue;
      best.plain = Math.min(best.plain, spent.plain);
      best.forwarded = Math.min(best.forwarded, spent.forwarded);
      best.refused = Math.min(best.refused, spent.refused);
    }
  } finally {
    for (const running of [plain, forwarding, refusing]) await running.stop();
    upstream.close();
    rmSync(folder, { recursive: true });
  }
  judge('a forwarded request', best.forwarded, best.plain, MAX_FORWARDED);
  judge('a refused request', best.refused, best.plain, MAX_REFUSED);
}

async function startUpstream(): Promise<{ port: number; close(): void }> {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'application/json').end('{"data":[]}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return {
    port: address.port,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** CPU time of one request, in microseconds. */
async function costOf({ pids, port }: Running, accounts: number): Promise<number> {
  const beforeUs = cpuUs(pids);
  await load(port, accounts);
  return (cpuUs(pids) - beforeUs) / REQUESTS;
}

function judge(what: string, us: number, plainUs: number, max: number): void {
  const ratio = us / plainUs;
  const isKept = ratio <= max;
  say(
    `${isKept ? 'ok  ' : 'FAIL'} ${what}: ${us.toFixed(1)} µs of CPU time, ${ratio.toFixed(2)} times the plain proxy's ` +
      `${plainUs.toFixed(1)} µs; at most ${max.toFixed(1)} times`,
  );
  if (!isKept) process.exitCode = 1;
}

/** Sends all requests over connections that never pause. */
async function load(port: number, accounts: number): Promise<void> {
  const each = Math.ceil(REQUESTS / CONNECTIONS);
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => converse(port, index, each, accounts)));
}

function converse(port: number, offset: number, count: number, accounts: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
    const reader = new AnswerReader();
    let sent = 0;
    const next = () => {
      if (sent === count) {
        socket.removeAllListeners('close').end();
        resolve();
        return;
      }
      sent++;
      socket.write(requestOf(((offset * count + sent) % accounts) + 1, PATH));
    };
    socket.on('connect', next);
    socket.on('data', (chunk) => {
      if (reader.push(String(chunk)) !== 0) next();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the gateway closed a connection')));
  });
}
