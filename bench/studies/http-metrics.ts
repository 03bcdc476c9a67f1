import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench, CONNECTIONS } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { table } from '../report/section.ts';

/** What `metrics.http: true` adds to a request. Neighbouring seconds are compared, because what else the machine does meets both sides alike. */
export async function measureHttpMetrics(bench: Bench): Promise<readonly string[]> {
  const sides = [
    { name: 'off', running: await bench.start(weir('memory'), 'off') },
    {
      name: 'on',
      running: await bench.start(weir('memory', { settings: { metrics: { http: true } } }), 'on'),
    },
  ];
  const measure = async ({ running }: (typeof sides)[number], seconds = 1) =>
    (await costOf(running, () => bench.strictLoad(running, { seconds }))).gatewayUs;
  // Until V8 has compiled what is used.
  for (const side of sides) await measure(side, bench.either(3, 1));
  const { off = [], on = [] } = await bench.inTurn(sides, measure);
  const addedUs = on.map((us, round) => us - (off[round] ?? Number.NaN));
  return [
    `CPU time of a GET in microseconds, counted in memory, ${CONNECTIONS} connections, ${ACCOUNTS} Accounts in turn: medians of ${bench.rounds} pairs of`,
    'alternating seconds.',
    '',
    ...table(
      ['without, µs:', '`metrics.http`, µs:', 'added, µs:', 'from, to'],
      [
        [
          median(off).toFixed(1),
          median(on).toFixed(1),
          median(addedUs).toFixed(1),
          `${Math.min(...addedUs).toFixed(1)} to ${Math.max(...addedUs).toFixed(1)}`,
        ],
      ],
    ),
  ];
}
