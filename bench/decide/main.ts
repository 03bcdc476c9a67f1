/**
 * `npx tsx bench/decide/main.ts`, with a fresh build: what a decision costs a program that asks in JSON, beside the same
 * decision for a proxy. One connection for the latency, sixteen for CPU and throughput; `--quick` writes nothing.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import type { Running } from '../contestants/contestant.ts';
import { startOnNode } from '../contestants/node-program.ts';
import { writeConfiguration } from '../contestants/weir.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { cpuUs } from '../lab/process-table.ts';
import { ACCOUNTS, FAR_ABOVE } from '../measure/bench.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const isQuick = process.argv.includes('--quick');
const ROUNDS = isQuick ? 2 : 5;
const ROUND_MS = isQuick ? 500 : 2_000;
const CONNECTIONS = 16;
const BATCH = 100;

/** One way to ask. */
interface Question {
  readonly name: string;
  /** Decisions of one request. */
  readonly decisions: number;
  readonly path: string;
  readonly headersOf: (token: string) => Readonly<Record<string, string>>;
  readonly bodyOf: (token: string) => string | undefined;
}

const one = (token: string) => ({ token, method: 'GET', path: '/v3/payments/payees' });
const noHeaders = () => ({});

const QUESTIONS: readonly Question[] = [
  {
    name: '`POST /decide`, one question',
    decisions: 1,
    path: '/decide',
    headersOf: noHeaders,
    bodyOf: (token) => JSON.stringify(one(token)),
  },
  {
    name: `\`POST /decide\`, ${BATCH} questions`,
    decisions: BATCH,
    path: '/decide',
    headersOf: noHeaders,
    bodyOf: (token) => JSON.stringify({ decisions: Array.from({ length: BATCH }, () => one(token)) }),
  },
  {
    name: '`ext-authz`',
    decisions: 1,
    path: '/ext-authz/v3/payments/payees',
    headersOf: (token) => ({ Authorization: `Bearer ${token}` }),
    bodyOf: () => undefined,
  },
];

interface Round {
  readonly p50Ms: number;
  readonly cpuUs: number;
  readonly perSecond: number;
}

/** Asks once. @returns how long it took, in milliseconds */
function ask(port: number, agent: Agent, question: Question, token: string): Promise<number> {
  const { path, headersOf, bodyOf } = question;
  const body = bodyOf(token);
  const method = body === undefined ? 'GET' : 'POST';
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request({ port, path, method, headers: headersOf(token), agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${question.name}: ${response.statusCode}`));
      response.resume().once('end', () => resolve(performance.now() - startedMs));
    });
    asking.once('error', reject).end(body);
  });
}

/** Asks on so many connections until the time is over. @returns how long each question took, in milliseconds */
async function askFor(port: number, question: Question, connections: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const untilMs = performance.now() + ROUND_MS;
  const timesMs: number[] = [];
  const client = async () => {
    while (performance.now() < untilMs) {
      const token = `token-${1 + (timesMs.length % ACCOUNTS)}`;
      timesMs.push(await ask(port, agent, question, token));
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  agent.destroy();
  return timesMs;
}

async function measure({ port, pids }: Running, question: Question): Promise<Round> {
  const alone = await askFor(port, question, 1);
  const beforeUs = cpuUs(pids);
  const startMs = performance.now();
  const decisions = (await askFor(port, question, CONNECTIONS)).length * question.decisions;
  const seconds = (performance.now() - startMs) / 1000;
  return {
    p50Ms: median(alone),
    cpuUs: (cpuUs(pids) - beforeUs) / decisions,
    perSecond: decisions / seconds,
  };
}

/** A row of the table for each question. */
async function measureStore(kind: 'memory' | 'redis', redisPort: number): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-decide-'));
  const scene = {
    folder,
    upstreamPort: 1,
    redisPort,
    cores: chooseCores(),
    limit: FAR_ABOVE,
    accounts: ACCOUNTS,
  };
  const files = (port: number) =>
    writeConfiguration(scene, { kind, port: 0, decisionsPort: port, accessLog: true });
  const weir = await startOnNode(scene, (port) => ['dist/main.js', 'start', '-c', files(port)]);
  const rounds = new Map<Question, Round[]>(QUESTIONS.map((question) => [question, []]));
  try {
    for (const question of QUESTIONS) await measure(weir, question);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [question, seen] of rounds) seen.push(await measure(weir, question));
    }
  } finally {
    await weir.stop();
    rmSync(folder, { recursive: true });
  }
  return [...rounds].map(([{ name }, seen]) => {
    const of = (member: keyof Round) => median(seen.map((round) => round[member]));
    return `| ${name} | ${kind} | ${of('p50Ms').toFixed(2)} | ${of('cpuUs').toFixed(0)} | ${of('perSecond').toFixed(0)} |`;
  });
}

const redis = await startRedisServer();
const rows = [...(await measureStore('memory', 0)), ...(await measureStore('redis', redis.port))];
await redis.stop();
publishSection(
  'decide',
  [
    '## Decisions for programs and proxies',
    '',
    `${provenance('npx tsx bench/decide/main.ts')}, machine load ${loadavg()[0]?.toFixed(1)}. Medians of ${ROUNDS} rounds in turn. The latency is that of one request on one`,
    `connection; CPU and throughput are those of ${CONNECTIONS} connections, for each decision, with the access log.`,
    '',
    '| | store | p50 of a request, ms | CPU of a decision, µs | decisions a second |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ],
  isQuick,
);
