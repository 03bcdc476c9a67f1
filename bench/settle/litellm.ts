import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../test/fixtures/free-port.ts';
import type { Bench } from '../lab/bench.ts';
import { findProgram } from '../lab/machine.ts';
import { type Program, startProgram } from '../lab/program.ts';
import { table, thousands } from '../report/section.ts';
import { Crowds } from './crowds.ts';
import { IN_AN_HOUR, REPLICAS, WINDOW_SECONDS } from './fleet.ts';
import { fullestOfStreams, streamsAtOnce, sum } from './ledger.ts';
import { killInTurn, startUpstream, untilQuiet } from './run.ts';

/** More clients are too many for it on two cores. */
const CLIENTS = 60;
const ACCOUNTS = 4;
/** Points of an Account in a window. */
const LIMIT = 20_000;
/** Its own minimum length of a key. */
const MASTER_KEY = 'sk-0123456789abcdef0123456789abcdef';

const CLIENT_KILLS = ['a client', 'a client', 'a client', 'a client'];

const RUNS = [
  { name: 'a window of 10 s, nothing killed', limit: LIMIT, windowSeconds: WINDOW_SECONDS, kinds: [] },
  {
    name: 'a window of an hour, clients and replicas killed',
    limit: IN_AN_HOUR,
    windowSeconds: 3_600,
    // A replica takes half a minute to start, so only one is killed.
    kinds: [...CLIENT_KILLS, 'a replica', ...CLIENT_KILLS],
  },
] as const;

type Terms = (typeof RUNS)[number];

/** LiteLLM's proxy with its own limits of tokens, on a smaller load of the same kind. */
export async function measureLiteLlm(bench: Bench): Promise<readonly string[]> {
  const command = findProgram('litellm', 'LITELLM');
  if (command === undefined) return ['LiteLLM was not measured: no `litellm` on PATH or in `LITELLM`.'];
  const columns: { name: string; figures: readonly string[] }[] = [];
  for (const terms of RUNS) {
    bench.say(`LiteLLM: ${terms.name}`);
    columns.push({ name: terms.name, figures: await runOne(bench, command, terms) });
  }
  return [
    `LiteLLM's proxy beside it: ${REPLICAS} replicas, a Redis, the same upstream and load, but only ${CLIENTS} clients of ${ACCOUNTS} keys, because more are too many for it here.`,
    `Each key has ${thousands(LIMIT)} tokens (\`tpm_limit\`) in a window of ${WINDOW_SECONDS} s (\`LITELLM_RATE_LIMIT_WINDOW_SIZE\`) in the first run, and more than it can use in the second.`,
    'It reserves `max_completion_tokens` and the estimated prompt, and corrects its counter by `usage` when a stream has ended. Its windows begin',
    'with a first request, and do not slide.',
    '',
    ...table(
      ['LiteLLM', ...columns.map(({ name }) => `${name}:`)],
      TITLES.map((title, index) => [title, ...columns.map(({ figures }) => figures[index] ?? '')]),
    ),
  ];
}

const TITLES = [
  'streams at once: half of the time, at least',
  'streams that ended with their usage',
  'streams that broke off',
  'fullest window by the upstream’s costs, of the limit',
  '**points over the limit**',
  'points of streams that ended with their usage',
  'points that Redis counts in the end, a window of an hour',
  '**difference**',
  'reservations of streams that broke off',
];

async function runOne(bench: Bench, command: string, terms: Terms): Promise<readonly string[]> {
  const folder = join(bench.folder, terms.name.replaceAll(/\W+/g, '-'));
  mkdirSync(folder);
  const upstream = await startUpstream(folder);
  const redis = await bench.startRedis();
  writeFiles(folder, terms.limit, upstream.port);
  const ports = await Promise.all(Array.from({ length: REPLICAS }, () => freePort()));
  const start = (port: number): Promise<Program> =>
    startProgram({
      command,
      args: ['--config', join(folder, 'config.yaml'), '--host', '127.0.0.1', '--port', `${port}`],
      cores: undefined,
      port,
      env: environment(redis.port, terms.windowSeconds),
    });
  const programs: Promise<Program>[] = [];
  for (const port of ports) {
    // Two that start at once take too long for each other.
    const program = start(port);
    programs.push(program);
    await program;
  }
  const clients = new Crowds(folder, ports, 1, {
    clients: CLIENTS,
    accounts: ACCOUNTS,
    seconds: bench.seconds,
  });
  await killInTurn(bench, terms.kinds, {
    'a client': () => clients.kill(),
    'a replica': async () => {
      const [killed, port] = [await programs[0], ports[0]];
      if (killed === undefined || port === undefined) return;
      process.kill(killed.pid, 'SIGKILL');
      programs[0] = start(port);
    },
  });
  await clients.ended();
  await untilQuiet(() => upstream.streams().length);
  const counted = await countedPoints(redis.port);
  for (const program of programs) await (await program).stop();
  await upstream.program.stop();
  await redis.stop();
  const streams = upstream.streams();
  const whole = streams.filter(({ isWhole }) => isWhole);
  const broken = streams.filter(({ isWhole }) => !isWhole);
  const finalPoints = sum(whole.map(({ cost }) => cost));
  const fullest = fullestOfStreams(streams, terms.limit, 1_000 * WINDOW_SECONDS);
  const isSum = terms.windowSeconds > WINDOW_SECONDS;
  return [
    thousands(streamsAtOnce(streams).usual),
    thousands(whole.length),
    thousands(broken.length),
    isSum ? '–' : fullest.toFixed(3),
    isSum ? '–' : thousands(Math.max(0, (fullest - 1) * terms.limit)),
    thousands(finalPoints),
    isSum ? thousands(counted) : '–',
    isSum ? thousands(counted - finalPoints) : '–',
    thousands(sum(broken.map(({ reserved }) => reserved))),
  ];
}

function writeFiles(folder: string, limit: number, upstreamPort: number): void {
  const model = { model: 'openai/fake', api_base: `http://127.0.0.1:${upstreamPort}/v1`, api_key: 'sk-none' };
  const config = {
    model_list: [{ model_name: 'fake', litellm_params: model }],
    litellm_settings: { num_retries: 0 },
    router_settings: { num_retries: 0 },
    general_settings: { custom_auth: 'bench_auth.user_api_key_auth' },
  };
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(config));
  // Keys need no database so.
  const auth = [
    'from litellm.proxy._types import UserAPIKeyAuth',
    'async def user_api_key_auth(request, api_key):',
    `    return UserAPIKeyAuth(api_key=api_key.removeprefix("Bearer "), tpm_limit=${limit})`,
  ];
  writeFileSync(join(folder, 'bench_auth.py'), `${auth.join('\n')}\n`);
}

function environment(redisPort: number, windowSeconds: number): Record<string, string> {
  return {
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: `${redisPort}`,
    LITELLM_RATE_LIMIT_WINDOW_SIZE: `${windowSeconds}`,
    LITELLM_MASTER_KEY: MASTER_KEY,
    LITELLM_LOG: 'ERROR',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
  };
}

async function countedPoints(redisPort: number): Promise<number> {
  const client = new Redis(redisPort);
  const keys = Array.from({ length: ACCOUNTS }, (_, index) => `{api_key:token-${index + 1}}:tokens`);
  const counts = await client.mget(keys);
  client.disconnect();
  return sum(counts.map(Number));
}
