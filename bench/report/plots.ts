import { PLAIN_PROXY } from '../contestants/all.ts';
import type { Results } from '../results.ts';
import { type Bar, drawBars } from './bars.ts';
import { type Row, rowsOf } from './figures.ts';

/** The plots of what was measured, by file name, each with the best on top. */
export function plotsOf(results: Results): Record<string, string> {
  const rows = rowsOf(results);
  const plain = rows.find(({ name }) => name === PLAIN_PROXY.name)?.perCore;
  const under = `${results.hardware}, ${results.date.slice(0, 10)}`;
  const perSecond = (value: number) =>
    plain === undefined ? thousands(value) : `${thousands(value)}  (${(value / plain).toFixed(2)} ×)`;
  const charts = {
    'throughput.svg': {
      title: 'Requests per second on one gateway core',
      subtitle: `from the CPU time of a request; limits never reached; longer is better; ${under}`,
      bars: bars(rows, ({ perCore }) => perCore, perSecond).reverse(),
    },
    'refused.svg': {
      title: 'Refused requests per second on one gateway core',
      subtitle: `from the CPU time of a request; a flood of 429s; longer is better; ${under}`,
      bars: bars(rows, ({ refusedPerCore }) => refusedPerCore, perSecond).reverse(),
    },
    'latency.svg': {
      title: 'Latency added to the upstream, p99',
      subtitle: `${results.latency?.rate ?? 0} requests/s, less for slower ones; shorter is better; ${under}`,
      bars: bars(
        rows,
        ({ addedMs }) => addedMs?.p99,
        (value) => `${value.toFixed(2)} ms`,
      ),
    },
    'window.svg': {
      title: 'Admitted in the worst second, as a share of the limit',
      subtitle: `1.00 is exact, more is too much; ${under}`,
      bars: bars(
        rows,
        ({ worstWindow }) => worstWindow,
        (value) => value.toFixed(2),
      ),
    },
    'cpu.svg': { ...cpuChart(rows), subtitle: `shorter is better; ${under}` },
  };
  return Object.fromEntries(
    Object.entries(charts)
      .filter(([, chart]) => chart.bars.length > 0)
      .map(([file, chart]) => [file, drawBars(chart)]),
  );
}

function cpuChart(rows: readonly Row[]) {
  const measured = rows.flatMap(({ name, gatewayCpuUs, redisCpuUs = 0 }): Bar[] =>
    gatewayCpuUs === undefined
      ? []
      : [{ name, values: [gatewayCpuUs, redisCpuUs], label: `${(gatewayCpuUs + redisCpuUs).toFixed(0)} µs` }],
  );
  return {
    title: 'CPU time per request, all processes',
    bars: measured.sort(byLength),
    parts: ['gateway', 'Redis'],
  };
}

/** Shortest first. */
function bars(
  rows: readonly Row[],
  value: (row: Row) => number | undefined,
  label: (value: number) => string,
): Bar[] {
  const all = rows.flatMap((row): Bar[] => {
    const one = value(row);
    return one === undefined ? [] : [{ name: row.name, values: [one], label: label(one) }];
  });
  return all.sort(byLength);
}

function byLength(a: Bar, b: Bar): number {
  return lengthOf(a) - lengthOf(b);
}

function lengthOf({ values }: Bar): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}
