import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import type { Crowd, Responses } from '../load/clients-program.ts';
import { table, thousands } from '../report/section.ts';

const PROGRAM = fileURLToPath(new URL('../load/clients-program.ts', import.meta.url));
const PATH = '/v3/payees?accountId=acct_1';
const CLIENTS = 1_000;
const [POINTS, WINDOW_SECONDS] = [6_000, 60];
const PER_SECOND = POINTS / WINDOW_SECONDS;
const DEMAND = 0.98;
const MOST_REFUSED = 0.01;

const CASES = [
  { name: 'wait for Retry-After', demand: DEMAND, hasKit: false },
  { name: 'weir-fetch.mjs', demand: DEMAND, hasKit: true },
  { name: 'wait for Retry-After', demand: undefined, hasKit: false },
  { name: 'weir-fetch.mjs', demand: undefined, hasKit: true },
] as const;

/** How many requests are refused where 1,000 clients share a limit and use nearly all of it. */
export async function measureClients(bench: Bench): Promise<readonly string[]> {
  const rows: string[][] = [];
  for (const { name, demand, hasKit } of CASES.filter((one) => bench.includes(wordsOf(one)))) {
    const limits = { 'account-shared': { per: 'account', points: POINTS, window: `${WINDOW_SECONDS}s` } };
    const gateway = await weir('redis', { limits }).start(await bench.scene(`clients ${rows.length}`));
    const rate = demand && demand * PER_SECOND;
    const url = `http://127.0.0.1:${gateway.port}${PATH}`;
    const warmUpSeconds = bench.either(120, 70);
    const counts = await run({ url, clients: CLIENTS, rate, hasKit, warmUpSeconds, seconds: bench.seconds });
    await gateway.stop();
    const { served, refused, failed } = counts;
    const share = refused / (served + refused);
    const asked = demand === undefined ? 'as much as they can' : percent(demand);
    const used = served / (PER_SECOND * bench.seconds);
    rows.push([name, asked, percent(used), percent(share), thousands(served), `${failed}`]);
    bench.say(`  ${rows.at(-1)?.join(', ')}`);
    if (hasKit && demand !== undefined && share >= MOST_REFUSED)
      throw new Error(`${percent(share)} of the requests of the kit were refused`);
  }
  return [
    `${thousands(CLIENTS)} clients share an Account's limit of ${thousands(POINTS)} points in ${WINDOW_SECONDS} seconds, and know nothing of each other. They ask for ${percent(DEMAND)} of it at random`,
    'times, or each sends its next request when the last one was answered. A request that is refused is sent again up to five times, and each attempt',
    `counts. ${bench.seconds} s after a warm-up; gateway, Redis and clients share the machine.`,
    '',
    ...table(['clients', 'ask for:', 'limit used:', 'refused with 429:', 'served:', 'failed:'], rows),
  ];
}

/** What chooses a case. */
function wordsOf({ hasKit, demand }: (typeof CASES)[number]): string {
  return `${hasKit ? 'kit' : 'plain'} ${demand === undefined ? 'most' : 'demand'}`;
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
