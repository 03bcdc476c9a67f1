import type { FleetSnapshot, ReplicaState } from '../../admin/fleet/snapshot.ts';
import { shownCount } from '../../domain/shown.ts';
import { milliseconds, percent, short } from '../format.ts';
import { isDown, isKnown, type Level, partOf, showHeadline } from './headline.ts';
import { Chart, type ChartMark } from './widgets/chart.ts';
import { byId, element, icon } from './widgets/dom.ts';
import { sinceText } from './widgets/figures.ts';

interface Tile {
  readonly title: string;
  readonly value: string;
  readonly more: string;
  readonly level?: Level;
  /** The figure is grey: it is unknown, or does not cover all replicas. */
  readonly isPartial?: boolean;
}

const charts = {
  requests: new Chart('Requests', 'per second', short),
  points: new Chart('Points charged', 'per second', short),
  latency: new Chart('Latency', 'milliseconds', short),
};
byId('charts').append(...Object.values(charts).map(({ node }) => node));

/** Shows the headline, the tiles and the charts. */
export function showOverview(fleet: FleetSnapshot): void {
  showHeadline(fleet);
  byId('tiles').replaceChildren(...tilesOf(fleet).map(tileNode));
  const { series } = fleet;
  const { stepSeconds, endSecond, partialSteps } = series;
  const scale = {
    stepSeconds,
    endAgoSeconds: fleet.asOfMs / 1_000 - endSecond,
    partialSteps,
    partialText: partOf(fleet) ?? '',
  };
  const marks = marksOf(fleet.changes, endSecond - stepSeconds);
  for (const chart of Object.values(charts)) chart.mark(marks, scale);
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

/** The places of changes in a chart whose last value begins then. */
export function marksOf(changes: FleetSnapshot['changes'], lastSecond: number): readonly ChartMark[] {
  return changes.map(({ atMs, name, text }) => ({
    agoSeconds: Math.max(0, lastSecond - atMs / 1_000),
    text: `${name}: ${text}`,
  }));
}

/** The version of the limits that most replicas have. */
export function commonLimits(replicas: readonly ReplicaState[]): string {
  const versions = replicas.map(({ limits }) => limits);
  const countOf = (version: string) => versions.filter((one) => one === version).length;
  return versions.toSorted((a, b) => countOf(b) - countOf(a) || a.localeCompare(b))[0] ?? '';
}

function tilesOf(fleet: FleetSnapshot): readonly Tile[] {
  const { rates, replicas } = fleet;
  const part = partOf(fleet);
  const sums: readonly Tile[] = [
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
  ];
  return [
    ...sums.map((tile) => (part === undefined ? tile : { ...tile, more: part, isPartial: true })),
    storeTile(replicas),
    replicaTile(fleet, part === undefined),
  ];
}

function replicaTile({ replicas, losses }: FleetSnapshot, isWhole: boolean): Tile {
  const known = replicas.filter(isKnown);
  const all = known.length < replicas.length ? shownCount(replicas.length) : '?';
  const versions = new Set(known.map(({ limits }) => limits)).size;
  const limits =
    versions === 1 ? `limits ${shortVersion(commonLimits(known))}` : `${versions} versions of limits`;
  // A lost replica is no longer in the list, so without this the tile would look as if nothing had happened.
  const lost = losses.latest.filter(({ what, backAtMs }) => what === 'replica' && backAtMs === null).length;
  const level = versions === 1 && isWhole ? 'good' : 'warning';
  return {
    title: 'Replicas',
    value: isWhole ? shownCount(replicas.length) : `${known.length} of ${all}`,
    more: lost > 0 ? `${lost} lost · ${limits}` : limits,
    level: lost > 0 ? 'bad' : level,
  };
}

function storeTile(replicas: readonly ReplicaState[]): Tile {
  const kinds = [...new Set(replicas.map(({ store }) => store.kind))].join(', ');
  const times = replicas.flatMap(({ store }) => store.unknownSinceMs ?? []);
  const down = replicas.find(({ store }) => isDown(store));
  if (down !== undefined) {
    const { problem } = down.store;
    return {
      title: 'Store',
      value: 'down',
      more: problem === null ? kinds : `${kinds} · ${problem}`,
      level: 'bad',
    };
  }
  if (times.length > 0)
    return { title: 'Store', value: 'unknown', more: sinceText(Math.min(...times)), isPartial: true };
  const slowest = replicas.map(({ store }) => store.p99Ms).filter((one) => one !== null);
  const more = slowest.length === 0 ? kinds : `${kinds} · p99 ${milliseconds(Math.max(...slowest))}`;
  return { title: 'Store', value: 'up', more, level: 'good' };
}

/** The start of a version is enough to compare it. */
export function shortVersion(version: string): string {
  return version.slice(0, 8);
}

function tileNode({ title, value, more, level, isPartial = false }: Tile): HTMLElement {
  const heading = level === undefined ? [title] : [icon(level), title];
  return element(
    'dl',
    { class: `panel tile ${level ?? ''}${isPartial ? ' unknown' : ''}`, 'data-tile': title.toLowerCase() },
    element('dt', {}, ...heading),
    element('dd', { class: 'value' }, value),
    element('dd', { class: 'muted' }, more),
  );
}
