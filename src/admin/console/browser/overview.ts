import type { FleetSnapshot, ReplicaState } from '../../fleet/snapshot.ts';
import { Chart, type ChartMark } from './widgets/chart.ts';
import { byId, element, icon, setText } from './widgets/dom.ts';
import { sinceText } from './widgets/figures.ts';
import { clock, count, milliseconds, percent, plural, short } from './widgets/format.ts';

export type Level = 'good' | 'warning' | 'bad';

interface Tile {
  readonly title: string;
  readonly value: string;
  readonly more: string;
  readonly level?: Level;
  /** The figure is grey: it is unknown, or not that of all replicas. */
  readonly isPartial?: boolean;
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
  const marks = marksOf(fleet);
  for (const chart of Object.values(charts)) chart.mark(marks);
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

/** The places of changes in a chart that ends now. */
export function marksOf({ changes, second }: FleetSnapshot): readonly ChartMark[] {
  return changes.map(({ atMs, name, text }) => ({
    agoSeconds: second - atMs / 1_000,
    text: `${name}: ${text}`,
  }));
}

/** Shows that nothing has come from the gateway since then. */
export function showLost(sinceMs: number): void {
  const text = `The connection is lost: everything here is ${sinceText(sinceMs)}`;
  byId('headline').replaceChildren(icon('bad'), text);
  byId('problems').replaceChildren();
  setText(byId('facts'), 'The page tries to reach this replica, or another one at the same address.');
}

/** The version of the limits that most replicas have. */
export function commonLimits(replicas: readonly ReplicaState[]): string {
  const versions = replicas.map(({ limits }) => limits);
  const countOf = (version: string) => versions.filter((one) => one === version).length;
  return versions.toSorted((a, b) => countOf(b) - countOf(a) || a.localeCompare(b))[0] ?? '';
}

function showHeadline(fleet: FleetSnapshot): void {
  const { replicas, second, totals } = fleet;
  const problems = problemsOf(fleet);
  const [first] = problems;
  const headline = byId('headline');
  const text =
    first?.text ??
    `${replicas.length === 1 ? 'The replica is' : `All ${replicas.length} replicas are`} healthy`;
  if (headline.textContent !== text) headline.replaceChildren(icon(first?.level ?? 'good'), text);
  byId('problems').replaceChildren(
    ...problems.slice(1).map(({ level, text: more }) => element('li', {}, icon(level), more)),
  );
  const known = replicas.filter(isKnown).length;
  const part = partOf(fleet);
  setText(
    byId('facts'),
    `${count(totals.requests)} requests and ${count(totals.points)} points since the ${known === 1 ? 'replica' : 'replicas'} started${part === undefined ? '' : `, ${part}`} · as of ${clock(second * 1_000)}`,
  );
}

function isKnown({ unknownSinceMs }: Pick<ReplicaState, 'unknownSinceMs'>): boolean {
  return unknownSinceMs === null;
}

/** Of which replicas the sums are, such as `at 1 of 3 replicas`. Undefined where they are those of all. */
function partOf({ replicas, othersUnknownSinceMs }: FleetSnapshot): string | undefined {
  const known = replicas.filter(isKnown).length;
  if (known < replicas.length) return `at ${known} of ${replicas.length} replicas`;
  return othersUnknownSinceMs === null ? undefined : 'at this replica alone';
}

function isDown({ breaker, unknownSinceMs }: ReplicaState['store']): boolean {
  return unknownSinceMs === null && breaker !== 'closed';
}

interface Problem {
  readonly level: Level;
  readonly text: string;
}

/** The worst first. */
function problemsOf(fleet: FleetSnapshot): readonly Problem[] {
  const { replicas, rates } = fleet;
  const problems: Problem[] = [];
  const add = (level: Level, affected: number, text: string) => {
    if (affected > 0) problems.push({ level, text });
  };
  const of = (affected: number) =>
    replicas.length === 1 ? '' : ` at ${affected} of ${replicas.length} replicas`;
  const known = replicas.filter(isKnown);
  const down = known.filter(({ store }) => isDown(store)).length;
  const unread = known.filter(({ store }) => store.unknownSinceMs !== null).length;
  const draining = known.filter(({ isReady }) => !isReady).length;
  const unsafe = known.filter(({ store }) => store.unsafeSettings > 0).length;
  const versions = new Set(known.map(({ limits }) => limits)).size;
  const unknown = unknownProblem(fleet);
  add('bad', down, `The store does not answer${of(down)}`);
  if (unknown !== undefined) problems.push(unknown);
  add('bad', unread, `Whether the store answers is unknown${of(unread)}`);
  add('bad', rates.failedShare, `${percent(rates.failedShare)} of requests fail with 503`);
  add('bad', rates.degradedShare, `${percent(rates.degradedShare)} of requests are served uncounted`);
  add('warning', versions - 1, `${versions} versions of the limits are in force`);
  add('warning', draining, `${plural(draining, 'replica')} not ready`);
  add('warning', unsafe, `Redis is not set up for strict limits${of(unsafe)}`);
  add('warning', rates.refusedShare, `${percent(rates.refusedShare)} of requests are refused`);
  return problems;
}

function unknownProblem({ replicas, othersUnknownSinceMs }: FleetSnapshot): Problem | undefined {
  const times = replicas.flatMap(({ unknownSinceMs }) => (unknownSinceMs === null ? [] : [unknownSinceMs]));
  const reason = othersUnknownSinceMs === null ? '' : ', because Redis cannot be read';
  if (times.length > 0) {
    const what = `${times.length} of ${replicas.length} replicas`;
    return { level: 'bad', text: `${what} ${sinceText(Math.min(...times))}${reason}` };
  }
  if (othersUnknownSinceMs === null) return undefined;
  return { level: 'bad', text: `Other replicas are ${sinceText(othersUnknownSinceMs)}${reason}` };
}

function tilesOf(fleet: FleetSnapshot): readonly Tile[] {
  const { rates, replicas } = fleet;
  const known = replicas.filter(isKnown);
  const part = partOf(fleet);
  const versions = new Set(known.map(({ limits }) => limits)).size;
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
    {
      title: 'Replicas',
      value:
        part === undefined
          ? count(replicas.length)
          : `${known.length} of ${known.length < replicas.length ? replicas.length : '?'}`,
      more: versions === 1 ? `limits ${shortVersion(commonLimits(known))}` : `${versions} versions of limits`,
      level: versions === 1 && part === undefined ? 'good' : 'warning',
    },
  ];
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
