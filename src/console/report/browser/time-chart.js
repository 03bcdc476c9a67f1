import { shownCount } from '../../../replay/shown.ts';
import { describeOnHover, drawLimit, frame, isInReach, time } from './frame.js';

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
  const drawn = frame(box, {
    label,
    most: isInReach(limit, most) ? Math.max(most, limit * 1.1) : most,
    format,
  });
  const { root, plot } = drawn;
  for (const line of lines) {
    if (line.values.length > 0) root.append(...plot.paths(line, (bin) => [bin / length, (bin + 1) / length]));
  }
  if (limit !== null) drawLimitAcross(drawn, limit, isInReach(limit, most));
  drawTimes(drawn, fromMs, fromMs + length * binMs);
  describeOnHover(drawn, (share) => {
    const bin = Math.floor(share * length);
    if (bin < 0 || bin >= length) return undefined;
    return {
      share: (bin + 0.5) / length,
      title: `${time(fromMs + bin * binMs)}, ${spanText(binMs)}`,
      lines: lines.map(({ name, values }) => `${name}: ${(format ?? shownCount)(values[bin] ?? 0)}`),
    };
  });
}

function drawLimitAcross({ root, plot }, limit, isShown) {
  const { left, right, top } = plot.area;
  const at = isShown ? Math.round(plot.y(limit)) + 0.5 : top;
  const line = isShown ? { x1: left, x2: right, y1: at, y2: at } : undefined;
  const label = { x: right - 4, y: at - 5, 'text-anchor': 'end' };
  drawLimit(root, limit, line, label, isShown ? '' : ', above this chart ↑');
}

const STEPS_MS = [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map(
  (seconds) => seconds * 1_000,
);

/** Labels of round times along the bottom. */
function drawTimes({ root, plot }, fromMs, toMs) {
  const { left, right } = plot.area;
  const most = Math.max(2, Math.floor((right - left) / 64));
  const span = toMs - fromMs;
  const step = STEPS_MS.find((one) => span / one <= most) ?? span / most;
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step) {
    const share = (at - fromMs) / span;
    const x = plot.x(share);
    const anchor = x < left + 20 ? 'start' : x > right - 20 ? 'end' : 'middle';
    root.append(plot.mark(share, timeLabel(at, step), anchor));
  }
}

function timeLabel(ms, stepMs) {
  const text = time(ms);
  if (stepMs >= 86_400_000 || text.endsWith('00:00:00')) return text.slice(5, 10);
  return text.slice(11, stepMs < 60_000 ? 19 : 16);
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
