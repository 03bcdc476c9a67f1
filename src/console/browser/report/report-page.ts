import { limitTimeText } from '../../../domain/duration.ts';
import { counted, shownCount, shownShare, shownTime } from '../../../domain/shown.ts';
import type { ReportBucket, ReportData } from '../../report/report.ts';
import { byId, element, setText, switchTheme } from '../widgets/dom.ts';
import { bucketTable } from './bucket-table.ts';
import { short } from './charts.ts';
import { timeChart } from './time-chart.ts';
import { windowsChart } from './windows-chart.ts';

const data = JSON.parse(byId('data').textContent) as ReportData;
const { result, traffic, buckets } = data;

function headline(): string {
  const { from, refused, shareRefused, changed } = result;
  if (from === null) return 'No charged request was read';
  const hasChanged = changed.refused > 0 || changed.admitted > 0 || refused.before !== refused.after;
  if (!hasChanged) return 'These limits would have changed nothing';
  const { before, after } = shareRefused;
  return `These limits would have refused ${shownShare(after)} of the requests instead of ${shownShare(before)}`;
}

function figure(name: string, value: string, more: string, style = ''): HTMLElement {
  return element(
    'div',
    { class: 'figure' },
    element('div', { class: 'name' }, name),
    element('div', { class: `value ${style}` }, value),
    element('div', { class: 'more' }, more),
  );
}

function showTotals(): void {
  const { requests, refused, shareRefused, changed, from, to, lines, unreadable } = result;
  document.title = `Weir replay: ${data.limitsName}`;
  setText(byId('headline'), headline());
  const period = from === null || to === null ? '' : `${shownTime(from)} to ${shownTime(to)} UTC · `;
  setText(byId('period'), `${period}${data.logNames.join(', ')} · limits of ${data.limitsName}`);
  const changeStyle =
    refused.after > refused.before ? 'worse' : refused.after < refused.before ? 'better' : '';
  const affected = buckets.filter((one) => one.refusedAfter !== one.refusedBefore).length;
  byId('figures').append(
    figure(
      'Requests',
      shownCount(requests),
      `${shownCount(lines)} lines, ${shownCount(unreadable)} unreadable`,
    ),
    figure('Refused before', shownShare(shareRefused.before), shownCount(refused.before)),
    figure('Refused after', shownShare(shareRefused.after), shownCount(refused.after), changeStyle),
    figure('Newly refused', shownCount(changed.refused), `${shownCount(changed.admitted)} newly admitted`),
    figure('Buckets affected', shownCount(affected), `of ${shownCount(buckets.length + data.leftOut)}`),
  );
  byId('notes').hidden = result.notes.length === 0;
  byId('notes').append(...result.notes.map((note) => element('p', {}, note)));
}

/** Classes of the style sheet, and what they mean. */
const REFUSED_LEGEND = [
  ['before', 'refused before'],
  ['after', 'refused after'],
] as const;

function showLegend(id: string, entries: readonly (readonly [style: string, name: string])[]): void {
  byId(id).replaceChildren(...entries.map(([style, name]) => element('span', { class: style }, name)));
}

/** The shares of `shareRefused` over time: before of the requests of the log, after of the requests charged. */
function refusedLines(columns: ReportData['traffic']['columns']) {
  const { logged, asked, refusedBefore, refusedAfter } = columns;
  const shares = (refused: readonly number[], of: readonly number[]) =>
    refused.map((one, bin) => one / (of[bin] || Number.POSITIVE_INFINITY));
  return [
    { name: 'before', style: 'before', values: shares(refusedBefore, logged) },
    { name: 'after', style: 'after', values: shares(refusedAfter, asked), isFilled: true },
  ];
}

/** Times that requests are counted by, with their seconds. */
const TIMES = [
  ['second', 1],
  ['minute', 60],
  ['hour', 3_600],
] as const;

/** The shortest time in which there is a request where there are most, because the numbers of an axis are short. */
function timeOf(requests: readonly number[], binSeconds: number): readonly [name: string, seconds: number] {
  const most = Math.max(0, ...requests);
  const isLong = (seconds: number) => most === 0 || most * seconds >= binSeconds;
  return TIMES.find(([, seconds]) => isLong(seconds)) ?? ['day', 86_400];
}

function drawTraffic(): void {
  const binSeconds = traffic.binUs / 1_000_000;
  const [time, seconds] = timeOf(traffic.columns.asked, binSeconds);
  const perTime = (values: readonly number[]) => values.map((value) => (value / binSeconds) * seconds);
  byId('traffic-unit').textContent = `Requests per ${time}`;
  showLegend('traffic-legend', [['asked', 'requests'], ...REFUSED_LEGEND]);
  timeChart(byId('traffic'), {
    label: `Requests per ${time} over time`,
    bins: traffic,
    lines: [
      { name: 'requests', style: 'asked', values: perTime(traffic.columns.asked), isFilled: true },
      {
        name: 'refused after',
        style: 'after',
        values: perTime(traffic.columns.refusedAfter),
        isFilled: true,
      },
    ],
    format: short,
  });
  const lines = refusedLines(traffic.columns);
  timeChart(byId('traffic-share'), {
    label: 'Share refused over time',
    bins: traffic,
    lines,
    format: shownShare,
  });
}

function showFacts(bucket: ReportBucket): void {
  const { limit, counts, shadow, requests, points } = bucket;
  const { refusedBefore, refusedAfter, shareRefused, windows, worstHour } = bucket;
  const facts: [name: string, value: string, more: string][] = [
    [
      'Limit',
      limit === null ? 'none' : shownCount(limit),
      limit === null ? '' : `${counts} ${limitTimeText(bucket)}`,
    ],
    ['Requests', shownCount(requests), `${shownCount(points)} ${counts}`],
    ['Refused before', shownCount(refusedBefore), shownShare(shareRefused.before)],
    ['Refused after', shownCount(refusedAfter), shownShare(shareRefused.after)],
    ['Fullest window', shownCount(bucket.fullestWindow), `${counts} asked`],
    [
      'Windows',
      `${shownCount(windows.p50)} / ${shownCount(windows.p99)} / ${shownCount(windows['p99.9'])}`,
      'p50 / p99 / p99.9',
    ],
  ];
  if (worstHour !== null) {
    const hour = shownTime(worstHour.from).slice(5, 16);
    const { refused, points: asked } = worstHour;
    facts.push([
      'Worst hour',
      hour,
      refused > 0 ? `${shownCount(refused)} refused` : counted(asked, counts.slice(0, -1)),
    ]);
  }
  if (bucket.refusedByOther.after > 0)
    facts.push(['Refused elsewhere', shownCount(bucket.refusedByOther.after), 'by the other bucket']);
  if (shadow !== undefined)
    facts.push(['Shadow limit', shownCount(shadow.limit), `would refuse ${shownCount(shadow.refused)}`]);
  byId('facts').replaceChildren(
    ...facts.map(([name, value, more]) =>
      element(
        'div',
        {},
        element('dt', {}, name),
        element('dd', {}, value, element('br'), element('small', {}, more)),
      ),
    ),
  );
}

function showBucket(bucket: ReportBucket | undefined): void {
  byId('detail').hidden = bucket === undefined;
  if (bucket === undefined) return;
  byId('detail-title').replaceChildren(`${bucket.id} `, element('span', { class: 'muted' }, bucket.bucket));
  showFacts(bucket);
  const { charts, limit } = bucket;
  byId('detail-charts').hidden = charts === undefined;
  byId('no-charts').hidden = charts !== undefined;
  showLegend(
    'detail-legend',
    charts === undefined ? [] : [['asked', 'points asked'], ['limit', 'limit'], ...REFUSED_LEGEND],
  );
  if (charts === undefined) return;
  const { bins, windows } = charts;
  const fullest = { name: 'fullest window', style: 'asked', values: bins.columns.fullest, isFilled: true };
  timeChart(byId('fullest'), {
    label: `Fullest window of ${bucket.id} over time, limit ${limit}`,
    bins,
    lines: [fullest],
    limit,
  });
  timeChart(byId('share'), {
    label: 'Share refused over time',
    bins,
    lines: refusedLines(bins.columns),
    format: shownShare,
  });
  windowsChart(byId('windows'), 'Windows by their points', windows, limit);
}

byId('theme').addEventListener('click', switchTheme);
showTotals();
bucketTable(buckets, data.leftOut, (bucket) => {
  showBucket(bucket);
  byId('detail').scrollIntoView({ block: 'nearest', behavior: 'smooth' });
});
drawTraffic();
showBucket(buckets[0]);
