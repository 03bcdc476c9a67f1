import { count, time } from './format.js';
import { describeOnHover, isInReach, plot, svg, timeAxis } from './plot.js';

/**
 * Values over time, as lines.
 * @param lines `{ name, style, values, isFilled }`, a value per bin
 * @param limit drawn as a dashed line; null where there is none
 */
export function timeChart(box, { label, bins, lines, limit = null, format }) {
  const fromMs = bins.startUs / 1_000;
  const binMs = bins.binUs / 1_000;
  const length = Math.max(1, ...lines.map(({ values }) => values.length));
  const most = Math.max(0, ...lines.flatMap(({ values }) => values));
  const drawn = plot(box, {
    label,
    most: isInReach(limit, most) ? Math.max(most, limit * 1.1) : most,
    format,
  });
  const { root, inner, y } = drawn;
  const x = (bin) => inner.left + (bin / length) * (inner.right - inner.left);
  for (const { style, values, isFilled } of lines) {
    const steps = values
      .map((value, bin) => `${bin === 0 ? 'M' : 'L'}${x(bin)},${y(value)}H${x(bin + 1)}`)
      .join('');
    if (steps === '') continue;
    if (isFilled)
      root.append(svg('path', { class: `area ${style}`, d: `${steps}V${inner.bottom}H${inner.left}Z` }));
    root.append(svg('path', { class: `line ${style}`, d: steps }));
  }
  if (limit !== null) drawLimitAcross(drawn, limit, isInReach(limit, most));
  timeAxis(drawn, fromMs, fromMs + length * binMs);
  describeOnHover(drawn, (share) => {
    const bin = Math.floor(share * length);
    if (bin < 0 || bin >= length) return undefined;
    return {
      share: (bin + 0.5) / length,
      title: `${time(fromMs + bin * binMs)}, ${spanText(binMs)}`,
      lines: lines.map(({ name, values }) => `${name}: ${(format ?? count)(values[bin] ?? 0)}`),
    };
  });
}

function drawLimitAcross({ root, inner, y }, limit, isShown) {
  const at = isShown ? Math.round(y(limit)) + 0.5 : inner.top;
  if (isShown) root.append(svg('line', { class: 'limit', x1: inner.left, x2: inner.right, y1: at, y2: at }));
  const text = isShown ? `limit ${count(limit)}` : `limit ${count(limit)}, above this chart ↑`;
  root.append(
    svg('text', { class: 'limit-label', x: inner.right - 4, y: at - 5, 'text-anchor': 'end' }, text),
  );
}

function spanText(ms) {
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ];
  const [size, unit] = units.find(([one]) => ms >= one) ?? [1, 'ms'];
  return `${Math.round((ms / size) * 10) / 10} ${unit}`;
}
