import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connect, type RateLimitClient } from '../../test/fixtures/rate-limit-service.ts';
import type { Running, Scene } from '../contestants/contestant.ts';
import { rateLimitVersion, startRateLimit } from '../contestants/envoy.ts';
import { startOnNode } from '../contestants/node-program.ts';
import { MAIN } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { fullestWindow, type Timed } from '../load/fullest-window.ts';
import { table } from '../report/section.ts';

const CONNECTIONS = 4;
const AT_A_TIME = 64;
/** Requests in any second, of the limit that is approached. */
const LIMIT = 200;

const RULES = {
  domain: 'bench',
  descriptors: [
    {
      key: 'tenant',
      rate_limit: { unit: 'minute', requests_per_unit: 100_000_000 },
      descriptors: [{ key: 'path', rate_limit: { unit: 'minute', requests_per_unit: 100_000_000 } }],
    },
    { key: 'hot', rate_limit: { unit: 'second', requests_per_unit: LIMIT } },
  ],
};

interface Side {
  readonly name: string;
  readonly service: Running;
  readonly clients: readonly RateLimitClient[];
}

/** Measures the CPU of a decision, and the worst second at a limit. Each service is alone on one core, with the same Redis and rules. */
export async function measureDescriptors(bench: Bench): Promise<readonly string[]> {
  const calls = bench.either(20_000, 4_000);
  const theirs = { GOMAXPROCS: '1', LIMIT_RESPONSE_HEADERS_ENABLED: 'true' };
  const sides = [
    sideOf('Weir', bench.endWith(await startWeir(await bench.scene('weir')))),
    sideOf(
      'envoyproxy/ratelimit',
      bench.endWith(await startRateLimit(await bench.scene('theirs'), RULES, theirs)),
    ),
  ];
  const measure = async (side: Side) => ({
    us: await cpuOfCall(side, calls),
    worst: await worstSecond(side),
  });
  for (const side of sides) await cpuOfCall(side, calls);
  const rounds = await bench.inTurn(sides, measure);
  for (const client of sides.flatMap(({ clients }) => clients)) client.close();
  const rows = Object.entries(rounds).map(([name, seen]) => {
    const us = seen.map((round) => round.us);
    const worst = Math.max(...seen.map((round) => round.worst));
    return [name, median(us).toFixed(0), us.map((of) => of.toFixed(0)).join(', '), worst.toFixed(2)];
  });
  return [
    `${bench.rounds} rounds in turn. Each service is alone on one core, with the same Redis, the same rules and the headers of envoyproxy/ratelimit`,
    `(${rateLimitVersion()}, GOMAXPROCS=1).`,
    `CPU is of ${calls} calls on ${CONNECTIONS} connections, ${AT_A_TIME} at a time, with two descriptors each: the median, and all rounds. The worst`,
    `second is the most of all rounds, of a flood across the border of a second: what one second certainly admitted, divided by the limit of ${LIMIT}.`,
    '',
    ...table(['', 'CPU of a decision, µs', 'rounds', 'worst second'], rows),
  ];
}

function sideOf(name: string, service: Running): Side {
  const own = { 'grpc.use_local_subchannel_pool': 1 };
  const url = `http://127.0.0.1:${service.port}`;
  return { name, service, clients: Array.from({ length: CONNECTIONS }, () => connect(url, undefined, own)) };
}

function startWeir(scene: Scene): Promise<Running> {
  const { folder, redisPort } = scene;
  const filesOf = (port: number) => ({
    'weir.yaml': {
      listen: 'off',
      admin: { host: '127.0.0.1', port: 0 },
      store: { kind: 'redis', url: `redis://127.0.0.1:${redisPort}`, deadlineMs: 1_000 },
      decisions: { envoy: { port, files: ['rules.yaml'], headers: 'legacy' } },
      operations: { list: [] },
      shutdown: { drainDelaySeconds: 0 },
    },
    'rules.yaml': RULES,
    'limits.yaml': {},
    'identities.yaml': {},
  });
  return startOnNode(scene, (port) => {
    for (const [name, content] of Object.entries(filesOf(port)))
      writeFileSync(join(folder, name), JSON.stringify(content));
    return [MAIN, 'start', '-c', join(folder, 'weir.yaml')];
  });
}

/** Two descriptors, of which one has two entries. */
const question = (tenant: string) => ({
  domain: 'bench',
  descriptors: [{ entries: { tenant, path: '/orders' } }, { entries: { tenant } }],
});

/** CPU of a call in microseconds, with 64 at a time. */
async function cpuOfCall({ service, clients }: Side, calls: number): Promise<number> {
  let requests = 0;
  const caller = async (_: unknown, index: number) => {
    const client = clients[index % clients.length];
    while (requests < calls) {
      requests += 1;
      await client?.ask(question(`tenant-${requests % 100}`));
    }
  };
  const { gatewayUs } = await costOf(service, async () => {
    await Promise.all(Array.from({ length: AT_A_TIME }, caller));
    return { requests };
  });
  return gatewayUs;
}

/** What any one second certainly admitted, divided by the limit: floods end at the border of a second, and begin after it. */
async function worstSecond({ clients: [client] }: Side): Promise<number> {
  const admitted: Timed[] = [];
  const ask = async () => {
    const fromMs = performance.now();
    const answer = await client?.ask({ domain: 'bench', descriptors: [{ entries: { hot: 'one' } }] });
    if (answer?.overallCode === 1)
      admitted.push({ fromMs, toMs: performance.now(), points: 1, limit: LIMIT });
  };
  const untilBorder = 1_000 - (Date.now() % 1_000);
  await setTimeout(untilBorder < 400 ? untilBorder + 600 : untilBorder - 400);
  const endMs = performance.now() + 1_300;
  while (performance.now() < endMs) await Promise.all(Array.from({ length: 8 }, ask));
  return fullestWindow(admitted);
}
