/**
 * `npm run bench:guard`: fails when a request costs clearly more than it does today. It compares Weir with the plain proxy in each
 * of several short rounds, because a busy machine changes its pace, and takes the median of the ratios. Rounds with too much are measured
 * again, because other work meets one of two programs more than the other for minutes; what costs more costs it each time.
 * Bytes and system calls do not depend on the pace, so their bounds are closer.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Running } from './contestants/contestant.ts';
import { fastifyProxy } from './contestants/fastify.ts';
import { weir } from './contestants/weir.ts';
import { guardHostileInputs } from './hostile/guard.ts';
import { Allocations } from './lab/allocations.ts';
import { cpuUs, readsAndWrites } from './lab/process-table.ts';
import { AnswerReader, requestOf } from './load/answer.ts';
import { startRedis } from './load/upstream.ts';
import { PATH } from './load/wrk.ts';
import { ACCOUNTS, FAR_ABOVE, sceneOf } from './measure/bench.ts';
import { median } from './measure/lineup.ts';

/**
 * CPU time per request with its access log line, in times of the plain proxy's; the kilobytes of heap that it takes; its reads and writes.
 * Seen on machines of two makes, idle and busy: 0.80 to 0.94, 13.0, 4.1; 1.00 to 1.23, 17.1, 4.4; 0.34 to 0.42, 9.9, 2.0.
 */
const MOST = {
  forwarded: { cpu: 1.1, kilobytes: 14.5, calls: 4.5 },
  'forwarded with Redis': { cpu: 1.4, kilobytes: 22, calls: 5.5 },
  refused: { cpu: 0.6, kilobytes: 11, calls: 2.5 },
} as const;

const ROUNDS = 20;
const MOST_TRIES = 3;
const WARM_UP_ROUNDS = 4;
const REQUESTS = 6_000;
const CONNECTIONS = 32;
/** Few enough that nearly every request is one too many. */
const REFUSED_ACCOUNTS = 10;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** One kind of request, and what the rounds have shown of it. */
interface Entry {
  readonly name: keyof typeof MOST;
  readonly running: Running;
  readonly accounts: number;
  readonly allocations: Allocations;
  /** Of its CPU time to the plain proxy's, in each round. */
  readonly ratios: number[];
}

if (process.platform === 'linux') {
  await guard();
  if (!(await guardHostileInputs(say))) process.exitCode = 1;
} else say('The guard reads /proc: it checks nothing outside Linux.');

async function guard(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-guard-'));
  const upstream = await startUpstream();
  const redis = await startRedis(undefined);
  const surroundings = { folder, upstream, redis, cores: undefined };
  const enter = async (
    name: keyof typeof MOST,
    kind: 'memory' | 'redis',
    limit: number,
    accounts: number,
  ) => {
    const allocations = new Allocations();
    const contestant = weir(kind, { allocations });
    const running = await contestant.start(sceneOf(surroundings, { name, limit, accounts }));
    return { name, running, accounts, allocations, ratios: [] };
  };
  const terms = { name: 'plain', limit: FAR_ABOVE, accounts: ACCOUNTS };
  const plain = await fastifyProxy('none').start(sceneOf(surroundings, terms));
  const entries: Entry[] = [
    await enter('forwarded', 'memory', FAR_ABOVE, ACCOUNTS),
    await enter('forwarded with Redis', 'redis', FAR_ABOVE, ACCOUNTS),
    await enter('refused', 'memory', 1, REFUSED_ACCOUNTS),
  ];
  try {
    for (let round = 0; round < WARM_UP_ROUNDS; round++) await measure(plain, entries);
    let before = entries.map(countsOf);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      if (tries > 0 && entries.every(keepsPace)) break;
      before = entries.map(countsOf);
      await takeRounds(plain, entries);
    }
    for (const [index, entry] of entries.entries()) judge(entry, before[index] ?? countsOf(entry));
  } finally {
    for (const { running } of entries) await running.stop();
    await plain.stop();
    await redis.stop();
    upstream.close();
    rmSync(folder, { recursive: true });
  }
}

async function takeRounds(plain: Running, entries: readonly Entry[]): Promise<void> {
  for (const { ratios } of entries) ratios.length = 0;
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, ratio] of (await measure(plain, entries)).entries())
      entries[index]?.ratios.push(ratio);
  }
}

function keepsPace({ name, ratios }: Entry): boolean {
  return median(ratios) <= MOST[name].cpu;
}

/** One round. @returns each entry's CPU time, in times of the plain proxy's */
async function measure(plain: Running, entries: readonly Entry[]): Promise<number[]> {
  const plainUs = await costOf(plain, ACCOUNTS);
  const ratios = [];
  for (const { running, accounts } of entries) ratios.push((await costOf(running, accounts)) / plainUs);
  return ratios;
}

interface Counts {
  readonly bytes: number;
  readonly calls: number;
}

function countsOf({ running, allocations }: Entry): Counts {
  return { bytes: allocations.bytes, calls: readsAndWrites(running.pids) };
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

function judge(entry: Entry, before: Counts): void {
  const { name, ratios } = entry;
  const most = MOST[name];
  const after = countsOf(entry);
  const each = (count: number) => count / (ROUNDS * REQUESTS);
  const range = [Math.min(...ratios), Math.max(...ratios)].map((one) => one.toFixed(2)).join(' to ');
  judgeOne(name, median(ratios), most.cpu, `times the plain proxy's CPU time (rounds from ${range})`);
  judgeOne(name, each(after.bytes - before.bytes) / 1_000, most.kilobytes, 'KB of heap');
  judgeOne(name, each(after.calls - before.calls), most.calls, 'reads and writes');
}

function judgeOne(name: string, seen: number, most: number, of: string): void {
  const isKept = seen <= most;
  say(`${isKept ? 'ok  ' : 'FAIL'} a request that is ${name}: ${seen.toFixed(2)} ${of}, at most ${most}`);
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
