import type { FleetSnapshot, ReplicaState } from '../../fleet/snapshot.ts';
import { Chart } from './widgets/chart.ts';
import { byId, element, icon, setText } from './widgets/dom.ts';
import { clock, count, milliseconds, percent, plural, short } from './widgets/format.ts';

type Level = 'good' | 'warning' | 'bad';

interface Tile {
  readonly title: string;
  readonly value: string;
  readonly more: string;
  readonly level?: Level;
}

const charts = {
  requests: new Chart({ title: 'Requests', unit: 'per second', format: short }),
  points: new Chart({ title: 'Points charged', unit: 'per second', format: short }),
  latency: new Chart({ title: 'Latency', unit: 'milliseconds', format: short }),
};
byId('charts').append(...Object.values(charts).map(({ node }) => node));

/** Shows the headline, the tiles and the charts. */
export function showOverview(fleet: FleetSnapshot): void {
  showHeadline(fleet);
  byId('tiles').replaceChildren(...tilesOf(fleet).map(tileNode));
  const { series } = fleet;
  charts.requests.show([
    { name: 'all', style: 'requests', values: series.requests, isFilled: true },
    { name: 'refused', style: 'refused', values: series.refused, isFilled: true },
    { name: 'degraded', style: 'degraded', values: series.degraded },
    { name: 'failed', style: 'failed', values: series.failed },
  ]);
  charts.points.show([{ name: 'charged', style: 'requests', values: series.points, isFilled: true }]);
  charts.latency.show([
    { name: 'p50', style: 'requests', values: series.p50Ms, isFilled: true },
    { name: 'p99', style: 'p99', values: series.p99Ms },
  ]);
}

/** The version of the limits that most replicas have. */
export function commonLimits(replicas: readonly ReplicaState[]): string {
  const versions = replicas.map(({ limits }) => limits);
  const countOf = (version: string) => versions.filter((one) => one === version).length;
  return versions.toSorted((a, b) => countOf(b) - countOf(a) || a.localeCompare(b))[0] ?? '';
}

function showHeadline({ replicas, rates, second, totals }: FleetSnapshot): void {
  const problems = problemsOf(replicas, rates);
  const [first] = problems;
  const headline = byId('headline');
  const text =
    first?.text ??
    `${replicas.length === 1 ? 'The replica is' : `All ${replicas.length} replicas are`} healthy`;
  if (headline.textContent !== text) headline.replaceChildren(icon(first?.level ?? 'good'), text);
  byId('problems').replaceChildren(
    ...problems.slice(1).map(({ level, text: more }) => element('li', {}, icon(level), more)),
  );
  setText(
    byId('facts'),
    `${count(totals.requests)} requests and ${count(totals.points)} points since the ${replicas.length === 1 ? 'replica' : 'replicas'} started · as of ${clock(second * 1_000)}`,
  );
}

/** The worst first. */
function problemsOf(replicas: readonly ReplicaState[], rates: FleetSnapshot['rates']) {
  const problems: { readonly level: Level; readonly text: string }[] = [];
  const add = (level: Level, affected: number, text: string) => {
    if (affected > 0) problems.push({ level, text });
  };
  const of = (affected: number) =>
    replicas.length === 1 ? '' : ` at ${affected} of ${replicas.length} replicas`;
  const open = replicas.filter(({ store }) => store.breaker !== 'closed').length;
  const draining = replicas.filter(({ isReady }) => !isReady).length;
  const unsafe = replicas.filter(({ store }) => store.unsafeSettings > 0).length;
  const versions = new Set(replicas.map(({ limits }) => limits)).size;
  add('bad', open, `The store does not answer${of(open)}`);
  add('bad', rates.failedShare, `${percent(rates.failedShare)} of requests fail with 503`);
  add('bad', rates.degradedShare, `${percent(rates.degradedShare)} of requests are served uncounted`);
  add('warning', versions - 1, `${versions} versions of the limits are in force`);
  add('warning', draining, `${plural(draining, 'replica')} not ready`);
  add('warning', unsafe, `Redis is not set up for strict limits${of(unsafe)}`);
  add('warning', rates.refusedShare, `${percent(rates.refusedShare)} of requests are refused`);
  return problems;
}

function tilesOf({ rates, replicas }: FleetSnapshot): readonly Tile[] {
  const open = replicas.filter(({ store }) => store.breaker !== 'closed').length;
  const kinds = [...new Set(replicas.map(({ store }) => store.kind))].join(', ');
  const slowest = replicas.map(({ store }) => store.p99Ms).filter((one) => one !== null);
  const versions = new Set(replicas.map(({ limits }) => limits)).size;
  return [
    { title: 'Requests', value: short(rates.requestsPerSecond), more: 'per second' },
    { title: 'Points', value: short(rates.pointsPerSecond), more: 'charged per second' },
    {
      title: 'Refused',
      value: percent(rates.refusedShare),
      more: 'with 429, last 10 s',
      ...(rates.refusedShare > 0 && { level: 'warning' as const }),
    },
    {
      title: 'Degraded',
      value: percent(rates.degradedShare),
      more: 'served uncounted',
      level: rates.degradedShare > 0 ? 'bad' : 'good',
    },
    { title: 'Latency', value: milliseconds(rates.p99Ms), more: `p99 · p50 ${milliseconds(rates.p50Ms)}` },
    {
      title: 'Store',
      value: open === 0 ? 'up' : 'down',
      more: slowest.length === 0 ? kinds : `${kinds} · p99 ${milliseconds(Math.max(...slowest))}`,
      level: open === 0 ? 'good' : 'bad',
    },
    {
      title: 'Replicas',
      value: count(replicas.length),
      more:
        versions === 1 ? `limits ${shortVersion(commonLimits(replicas))}` : `${versions} versions of limits`,
      level: versions === 1 ? 'good' : 'warning',
    },
  ];
}

/** The start of a version is enough to compare it. */
export function shortVersion(version: string): string {
  return version.slice(0, 8);
}

function tileNode({ title, value, more, level }: Tile): HTMLElement {
  const heading = level === undefined ? [title] : [icon(level), title];
  return element(
    'dl',
    { class: `panel tile ${level ?? ''}`, 'data-tile': title.toLowerCase() },
    element('dt', {}, ...heading),
    element('dd', { class: 'value' }, value),
    element('dd', { class: 'muted' }, more),
  );
}
