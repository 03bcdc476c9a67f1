import { PLAIN_PROXY } from '../contestants/all.ts';
import { drawBars } from '../report/bars.ts';
import { thousands } from '../report/section.ts';
import type { Results } from './results.ts';
import { type Row, rowsOf } from './rows.ts';

interface Plot {
  readonly title: string;
  readonly subtitle: string;
  /** The lengths of a bar's parts; undefined if it was not measured. */
  readonly values: (row: Row) => readonly (number | undefined)[];
  readonly label: (length: number) => string;
  readonly isLongerBetter?: boolean;
  /** What each part of a bar is. */
  readonly parts?: readonly string[];
}

/** The plots of what was measured, by file name, each with the best on top. */
export function plotsOf(results: Results): Record<string, string> {
  const rows = rowsOf(results);
  const plain = rows.find(({ name }) => name === PLAIN_PROXY.name)?.perCore;
  const under = `${results.hardware}, ${results.date.slice(0, 10)}`;
  const drawn = Object.entries(plotTable(results.latency?.rate ?? 0, plain)).flatMap(([file, plot]) => {
    const bars = barsOf(rows, plot);
    const subtitle = `${plot.subtitle}; ${under}`;
    const chart = { title: plot.title, subtitle, groups: [{ bars }], parts: plot.parts ?? [] };
    return bars.length === 0 ? [] : [[file, drawBars(chart)] as const];
  });
  return Object.fromEntries(drawn);
}

function plotTable(rate: number, plain: number | undefined): Readonly<Record<string, Plot>> {
  const perSecond = (value: number) =>
    plain === undefined ? thousands(value) : `${thousands(value)}  (${(value / plain).toFixed(2)} ×)`;
  return {
    'throughput.svg': {
      title: 'Requests per second on one gateway core',
      subtitle: 'from the CPU time of a request; limits never reached; longer is better',
      values: ({ perCore }) => [perCore],
      label: perSecond,
      isLongerBetter: true,
    },
    'refused.svg': {
      title: 'Refused requests per second on one gateway core',
      subtitle: 'from the CPU time of a request; a flood of 429s; longer is better',
      values: ({ refusedPerCore }) => [refusedPerCore],
      label: perSecond,
      isLongerBetter: true,
    },
    'latency.svg': {
      title: 'Latency added to the upstream, p99',
      subtitle: `${rate} requests/s, less for slower ones; shorter is better`,
      values: ({ addedP99Ms }) => [addedP99Ms],
      label: (value) => `${value.toFixed(2)} ms`,
    },
    'window.svg': {
      title: 'Admitted in the worst second, as a share of the limit',
      subtitle: '1.00 is exact, more is too much',
      values: ({ worstWindow }) => [worstWindow],
      label: (value) => value.toFixed(2),
    },
    'cpu.svg': {
      title: 'CPU time per request, all processes',
      subtitle: 'shorter is better',
      values: ({ gatewayCpuUs, redisCpuUs }) => [gatewayCpuUs, redisCpuUs],
      label: (value) => `${value.toFixed(0)} µs`,
      parts: ['gateway', 'Redis'],
    },
  };
}

function barsOf(rows: readonly Row[], { values, label, isLongerBetter = false }: Plot) {
  const bars = rows.flatMap((row) => {
    const lengths = values(row).flatMap((value) => value ?? []);
    const length = lengths.reduce((sum, value) => sum + value, 0);
    return lengths.length === 0 ? [] : [{ name: row.name, values: lengths, label: label(length), length }];
  });
  const sorted = bars.sort((one, other) => one.length - other.length);
  return isLongerBetter ? sorted.reverse() : sorted;
}
