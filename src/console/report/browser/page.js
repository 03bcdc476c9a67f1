import { shownCount, shownShare } from '../../../replay/shown.ts';
import { byId, element, switchTheme } from '../../browser/widgets/dom.ts';
import { short, time } from './frame.js';
import { histogram } from './histogram.js';
import { bucketTable } from './table.js';
import { timeChart } from './time-chart.js';

const data = JSON.parse(byId('data').textContent);
const { result, traffic, buckets } = data;
let shown = buckets[0];

function headline() {
  const { requests, shareRefused, changed } = result;
  if (requests === 0) return 'No charged request was read';
  if (changed.refused === 0 && changed.admitted === 0) return 'These limits would have changed nothing';
  const { before, after } = shareRefused;
  return `These limits would have refused ${shownShare(after)} of the requests instead of ${shownShare(before)}`;
}

function figure(name, value, more, style = '') {
  return element(
    'div',
    { class: 'figure' },
    element('div', { class: 'name' }, name),
    element('div', { class: `value ${style}` }, value),
    element('div', { class: 'more' }, more),
  );
}

function showTotals() {
  const { requests, refused, shareRefused, changed, from, to, lines, unreadable } = result;
  document.title = `Weir replay: ${data.limitsName}`;
  byId('headline').textContent = headline();
  const period = from === null ? '' : `${time(Date.parse(from))} to ${time(Date.parse(to))} UTC · `;
  byId('period').textContent = `${period}${data.logNames.join(', ')} · limits of ${data.limitsName}`;
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

const REFUSED_LEGEND = [
  ['before', 'refused before'],
  ['after', 'refused after'],
];

function showLegend(id, entries) {
  byId(id).replaceChildren(...entries.map(([style, name]) => element('span', { class: style }, name)));
}

function refusedLines({ requests, refusedBefore, refusedAfter }) {
  const shares = (refused) =>
    refused.map((one, bin) => (requests[bin] > 0 ? Math.min(1, one / requests[bin]) : 0));
  return [
    { name: 'before', style: 'before', values: shares(refusedBefore) },
    { name: 'after', style: 'after', values: shares(refusedAfter), isFilled: true },
  ];
}

function drawTraffic() {
  const seconds = traffic.binUs / 1_000_000;
  const perSecond = (values) => values.map((value) => value / seconds);
  showLegend('traffic-legend', [['asked', 'requests'], ...REFUSED_LEGEND]);
  timeChart(byId('traffic'), {
    label: 'Requests per second over time',
    bins: traffic,
    lines: [
      { name: 'requests', style: 'asked', values: perSecond(traffic.columns.requests), isFilled: true },
      {
        name: 'refused after',
        style: 'after',
        values: perSecond(traffic.columns.refusedAfter),
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

function showFacts(bucket) {
  const { limit, shadow, requests, points, refusedBefore, refusedAfter, shareRefused, windows, worstHour } =
    bucket;
  const facts = [
    [
      'Limit',
      limit === null ? 'none' : shownCount(limit),
      limit === null ? '' : `points in ${result.windowSeconds} s`,
    ],
    ['Requests', shownCount(requests), `${shownCount(points)} points`],
    ['Refused before', shownCount(refusedBefore), shownShare(shareRefused.before)],
    ['Refused after', shownCount(refusedAfter), shownShare(shareRefused.after)],
    ['Fullest window', shownCount(bucket.fullestWindow), 'points asked'],
    [
      'Windows',
      `${shownCount(windows.p50)} / ${shownCount(windows.p99)} / ${shownCount(windows['p99.9'])}`,
      'p50 / p99 / p99.9',
    ],
  ];
  if (worstHour !== null) {
    const hour = time(Date.parse(worstHour.from)).slice(5, 16);
    facts.push(['Worst hour', hour, `${shownCount(worstHour.refused)} refused`]);
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

function showBucket(bucket) {
  byId('detail').hidden = bucket === undefined;
  if (bucket === undefined) return;
  shown = bucket;
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
  histogram(byId('windows'), { label: 'Windows by their points', windows, limit });
}

function draw() {
  drawTraffic();
  showBucket(shown);
}

byId('theme').addEventListener('click', switchTheme);
showTotals();
bucketTable(buckets, data.leftOut, (bucket) => {
  showBucket(bucket);
  byId('detail').scrollIntoView({ block: 'nearest', behavior: 'smooth' });
});
draw();
let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width) return;
  width = innerWidth;
  draw();
});
