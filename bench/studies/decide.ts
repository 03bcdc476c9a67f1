import { Agent, request } from 'node:http';
import { freePort } from '../../test/fixtures/free-port.ts';
import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { table } from '../report/section.ts';

const CONNECTIONS = 16;
const BATCH = 100;

/** One way to ask. */
interface Question {
  readonly name: string;
  /** Decisions of one request. */
  readonly decisions: number;
  readonly path: string;
  readonly headersOf?: (token: string) => Readonly<Record<string, string>>;
  readonly bodyOf?: (token: string) => unknown;
}

const one = (token: string) => ({ token, method: 'GET', path: '/v3/payments/payees' });

const QUESTIONS: readonly Question[] = [
  { name: '`POST /decide`, one question', decisions: 1, path: '/decide', bodyOf: one },
  {
    name: `\`POST /decide\`, ${BATCH} questions`,
    decisions: BATCH,
    path: '/decide',
    bodyOf: (token) => ({ decisions: Array.from({ length: BATCH }, () => one(token)) }),
  },
  {
    name: '`ext-authz`',
    decisions: 1,
    path: '/ext-authz/v3/payments/payees',
    headersOf: (token) => ({ Authorization: `Bearer ${token}` }),
  },
];

/** Measures the latency on one connection, and CPU and throughput on sixteen. */
export async function measureDecisions(bench: Bench): Promise<readonly string[]> {
  const rows = [];
  for (const kind of ['memory', 'redis'] as const) {
    const port = await freePort();
    const gateway = await bench.start(weir(kind, { settings: { decisions: { port } } }), kind);
    const measure = (question: Question) => measureQuestion({ ...gateway, port }, question, bench.seconds);
    for (const question of QUESTIONS) await measure(question);
    const rounds = await bench.inTurn(QUESTIONS, measure);
    await gateway.stop();
    for (const [name, seen] of Object.entries(rounds)) {
      const of = (member: 'p50Ms' | 'us' | 'perSecond') => median(seen.map((round) => round[member]));
      rows.push([name, kind, of('p50Ms').toFixed(2), of('us').toFixed(0), of('perSecond').toFixed(0)]);
    }
  }
  return [
    `Medians of ${bench.rounds} rounds in turn. The latency is of one request on one connection; CPU and throughput are of`,
    `${CONNECTIONS} connections, for each decision, with the access log.`,
    '',
    ...table(['', 'store', 'p50 of a request, ms', 'CPU of a decision, µs', 'decisions a second'], rows),
  ];
}

async function measureQuestion(gateway: Running, question: Question, seconds: number) {
  const alone = await askFor(gateway.port, question, 1, seconds);
  const startMs = performance.now();
  const { requests, gatewayUs } = await costOf(gateway, async () => ({
    requests: (await askFor(gateway.port, question, CONNECTIONS, seconds)).length * question.decisions,
  }));
  const perSecond = (requests * 1000) / (performance.now() - startMs);
  return { p50Ms: median(alone), us: gatewayUs, perSecond };
}

/** Asks on this many connections until the time is over. @returns how long each question took, in milliseconds */
async function askFor(
  port: number,
  question: Question,
  connections: number,
  seconds: number,
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const untilMs = performance.now() + seconds * 1_000;
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

/** Asks once. @returns how long it took, in milliseconds */
function ask(port: number, agent: Agent, question: Question, token: string): Promise<number> {
  const { name, path, headersOf, bodyOf } = question;
  const method = bodyOf === undefined ? 'GET' : 'POST';
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request({ port, path, method, headers: headersOf?.(token) ?? {}, agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${name}: ${response.statusCode}`));
      response.resume().once('end', () => resolve(performance.now() - startedMs));
    });
    asking.once('error', reject).end(bodyOf === undefined ? undefined : JSON.stringify(bodyOf(token)));
  });
}
