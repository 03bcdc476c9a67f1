import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import type { Crowd, Responses } from '../load/clients-program.ts';
import { table, thousands } from '../report/section.ts';

const PROGRAM = fileURLToPath(new URL('../load/clients-program.ts', import.meta.url));
const PATH = '/v3/payees';
const CLIENTS = 1_000;
const [POINTS, WINDOW_SECONDS] = [6_000, 30];
/** Until waits are as long as they will be. */
const WARM_UP_SECONDS = 3 * WINDOW_SECONDS;
const DEMAND = 0.98;
const LEAST_USED = 0.97;
const MOST_REFUSED = 0.01;

const CASES = [
  { name: 'wait for Retry-After', hasKit: false, word: 'plain' },
  { name: 'weir-fetch.mjs', hasKit: true, word: 'kit' },
] as const;

/** How many requests are refused where 1,000 clients share a limit and use nearly all of it. Both cases run at once, each with a limit of its own. */
export async function measureClients(bench: Bench): Promise<readonly string[]> {
  const limits = { 'account-shared': { per: 'account', points: POINTS, window: `${WINDOW_SECONDS}s` } };
  const gateway = await bench.start(weir('redis', { limits }), 'clients');
  const cases = CASES.filter((one) => bench.includes(one.word));
  const measured = cases.map(async ({ name, hasKit }, index) => {
    const { served, refused, failed } = await run({
      url: `http://127.0.0.1:${gateway.port}${PATH}`,
      account: index + 1,
      clients: CLIENTS,
      windowSeconds: WINDOW_SECONDS,
      requests: DEMAND * POINTS,
      hasKit,
      warmUpSeconds: WARM_UP_SECONDS,
      seconds: bench.seconds,
    });
    const share = refused / (served + refused);
    const used = (served * WINDOW_SECONDS) / (POINTS * bench.seconds);
    const figures = `${percent(used)} of the limit used, ${percent(share)} refused, ${failed} failed`;
    bench.say(`  ${name}: ${figures}`);
    if (hasKit && (share >= MOST_REFUSED || used < LEAST_USED || failed > 0))
      throw new Error(
        `${name} missed its aim, at least ${percent(LEAST_USED)} used and less than ${percent(MOST_REFUSED)} refused: ${figures}`,
      );
    return [name, percent(used), percent(share), thousands(served), `${failed}`];
  });
  const rows = await Promise.all(measured);
  return [
    `${thousands(CLIENTS)} clients share an Account's limit of ${thousands(POINTS)} points in ${WINDOW_SECONDS} seconds, and know nothing of each other. They are asked for ${percent(DEMAND)} of it at random`,
    `times. A request that is refused is sent again up to five times, and each attempt counts. ${bench.seconds} s after a warm-up of ${WARM_UP_SECONDS} s; gateway, Redis and`,
    'the clients of both rows share the machine.',
    '',
    ...table(['clients', 'limit used:', 'refused with 429:', 'served:', 'failed:'], rows),
  ];
}

async function run(crowd: Crowd): Promise<Responses> {
  const program = spawn(process.execPath, ['--import', 'tsx', PROGRAM, JSON.stringify(crowd)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(await text(program.stdout)) as Responses;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
