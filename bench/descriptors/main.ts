/**
 * `npx tsx bench/descriptors/main.ts`, with a fresh build: Envoy's rate limit service, answered by Weir and by envoyproxy/ratelimit, each
 * alone on one core with the same Redis and the same file. CPU of a decision, and the worst second at a limit. `--quick` writes nothing.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../../test/fixtures/free-port.ts';
import { connect, type RateLimitClient } from '../../test/fixtures/rate-limit-service.ts';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import type { Scene } from '../contestants/contestant.ts';
import { rateLimitVersion, startRateLimit } from '../contestants/envoy.ts';
import { MAIN } from '../contestants/weir.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { cpuUs } from '../lab/process-table.ts';
import { type Program, startProgram } from '../lab/program.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const isQuick = process.argv.includes('--quick');
const ROUNDS = isQuick ? 2 : 5;
const CALLS = isQuick ? 4_000 : 20_000;
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

interface Service {
  readonly name: string;
  readonly program: Program;
  readonly clients: readonly RateLimitClient[];
}

async function startWeir({ cores, folder, redisPort }: Scene, port: number): Promise<Program> {
  const files = {
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
  };
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), JSON.stringify(content));
  const args = [MAIN, 'start', '-c', join(folder, 'weir.yaml')];
  return startProgram({
    command: process.execPath,
    args,
    cores: cores?.gateway,
    port,
    env: { NODE_ENV: 'production' },
  });
}

/** Two descriptors, of which one has two entries. */
const question = (tenant: string) => ({
  domain: 'bench',
  descriptors: [{ entries: { tenant, path: '/orders' } }, { entries: { tenant } }],
});

/** CPU of a call in microseconds, with so many at a time. */
async function cpuOfCall({ program, clients }: Service): Promise<number> {
  const beforeUs = cpuUs([program.pid]);
  let sent = 0;
  const caller = async (_: unknown, index: number) => {
    const client = clients[index % clients.length];
    while (sent < CALLS) {
      sent += 1;
      await client?.ask(question(`tenant-${sent % 100}`));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, caller));
  return (cpuUs([program.pid]) - beforeUs) / sent;
}

/** A call that was admitted: when it was sent and answered. */
interface Admitted {
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** What any one second certainly admitted, divided by the limit: floods end at the border of a second, and begin after it. */
async function worstSecond({ clients: [client] }: Service): Promise<number> {
  const admitted: Admitted[] = [];
  const ask = async () => {
    const sentMs = performance.now();
    const answer = await client?.ask({ domain: 'bench', descriptors: [{ entries: { hot: 'one' } }] });
    if (answer?.overallCode === 1) admitted.push({ sentMs, answeredMs: performance.now() });
  };
  const untilBorder = 1_000 - (Date.now() % 1_000);
  await setTimeout(untilBorder < 400 ? untilBorder + 600 : untilBorder - 400);
  const endMs = performance.now() + 1_300;
  while (performance.now() < endMs) await Promise.all(Array.from({ length: 8 }, ask));
  return mostInASecond(admitted) / LIMIT;
}

function mostInASecond(admitted: readonly Admitted[]): number {
  const within = ({ sentMs: fromMs }: Admitted) =>
    admitted.filter(({ sentMs, answeredMs }) => sentMs >= fromMs && answeredMs <= fromMs + 1_000).length;
  return Math.max(0, ...admitted.map(within));
}

const cores = chooseCores();
const redis = await startRedisServer();
const folder = mkdtempSync(join(tmpdir(), 'weir-descriptors-'));
mkdirSync(join(folder, 'theirs'));
const scene: Scene = { folder, upstreamPort: 1, redisPort: redis.port, cores, limit: 1, accounts: 1 };
const start = async (name: string, startOne: (port: number) => Promise<Program>): Promise<Service> => {
  const port = await freePort();
  const program = await startOne(port);
  const own = { 'grpc.use_local_subchannel_pool': 1 };
  const clients = Array.from({ length: CONNECTIONS }, () =>
    connect(`http://127.0.0.1:${port}`, undefined, own),
  );
  return { name, program, clients };
};
const services = [
  await start('Weir', (port) => startWeir(scene, port)),
  await start('envoyproxy/ratelimit', (port) =>
    startRateLimit({ ...scene, folder: join(folder, 'theirs') }, port, RULES, {
      GOMAXPROCS: '1',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    }),
  ),
];
const rounds = services.map((service) => ({ service, cpuUs: [] as number[], worst: [] as number[] }));
for (const service of services) await cpuOfCall(service);
for (let round = 0; round < ROUNDS; round++) {
  for (const seen of rounds) {
    seen.cpuUs.push(await cpuOfCall(seen.service));
    seen.worst.push(await worstSecond(seen.service));
  }
}
for (const { clients, program } of services) {
  for (const client of clients) client.close();
  await program.stop();
}
await redis.stop();
rmSync(folder, { recursive: true });

publishSection(
  'descriptors',
  [
    "## Envoy's rate limit service",
    '',
    `${provenance('npx tsx bench/descriptors/main.ts')}, machine load ${loadavg()[0]?.toFixed(1)}, ${ROUNDS} rounds in turn.`,
    'Each service is alone on one core, with the same Redis, the same rules and the headers of envoyproxy/ratelimit',
    `(${rateLimitVersion()}, GOMAXPROCS=1).`,
    `CPU is that of ${CALLS} calls on ${CONNECTIONS} connections, ${AT_A_TIME} at a time, with two descriptors each: the median, and all rounds. The worst`,
    `second is the most of all rounds, of a flood across the border of a second: what one second certainly admitted, divided by the limit of ${LIMIT}.`,
    '',
    '| | CPU of a decision, µs | rounds | worst second |',
    '| --- | --- | --- | --- |',
    ...rounds.map(({ service: { name }, cpuUs: seen, worst }) => {
      const all = seen.map((one) => one.toFixed(0)).join(', ');
      return `| ${name} | ${median(seen).toFixed(0)} | ${all} | ${Math.max(...worst).toFixed(2)} |`;
    }),
  ],
  isQuick,
);
