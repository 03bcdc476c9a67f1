import { count, percent, short } from './format.js';
import { describeOnHover, isInReach, plot, svg } from './plot.js';

const MOST_BARS = 48;

/** How many windows had how many points, with the limit; the bars above it are those with refusals. */
export function histogram(box, { label, windows, limit }) {
  const largest = windows.at(-1)?.[0] ?? 1;
  const reach = isInReach(limit, largest) ? Math.max(largest, limit) : largest;
  const width = Math.max(1, Math.ceil((reach + 1) / MOST_BARS));
  const bars = new Array(Math.ceil((reach + 1) / width)).fill(0);
  for (const [points, windowCount] of windows) bars[Math.floor(points / width)] += windowCount;
  const total = bars.reduce((sum, one) => sum + one, 0);
  // Few windows are full and many nearly empty: on a plain scale the full ones could not be seen.
  const height = (value) => Math.log10(value + 1);
  const drawn = plot(box, {
    label,
    most: Math.ceil(height(Math.max(1, ...bars))),
    format: (power) => (Number.isInteger(power) ? short(power === 0 ? 0 : 10 ** power) : ''),
  });
  const { root, inner, y } = drawn;
  const step = (inner.right - inner.left) / bars.length;
  for (const [bar, value] of bars.entries()) {
    if (value === 0) continue;
    const isOver = limit !== null && bar * width > limit;
    const top = y(height(value));
    root.append(
      svg('rect', {
        class: isOver ? 'bar over' : 'bar',
        x: inner.left + bar * step + Math.min(1, step / 8),
        y: top,
        width: Math.max(1, step - Math.min(2, step / 4)),
        height: inner.bottom - top,
        rx: Math.min(2, step / 4),
      }),
    );
  }
  drawPoints(drawn, bars.length, width);
  drawLimitUpwards(drawn, limit, isInReach(limit, largest), bars.length * width);
  describeOnHover(drawn, (share) => {
    const bar = Math.floor(share * bars.length);
    if (bars[bar] === undefined) return undefined;
    const points = width === 1 ? count(bar) : `${count(bar * width)} to ${count((bar + 1) * width - 1)}`;
    return {
      share: (bar + 0.5) / bars.length,
      title: `${points} points`,
      lines: [`${count(bars[bar])} windows, ${percent(bars[bar] / total)}`],
    };
  });
}

function drawPoints({ root, inner }, bars, width) {
  const every = Math.max(1, Math.ceil(bars / Math.max(2, Math.floor((inner.right - inner.left) / 60))));
  for (let bar = 0; bar < bars; bar += every) {
    const x = inner.left + ((bar + 0.5) / bars) * (inner.right - inner.left);
    root.append(svg('text', { x, y: inner.bottom + 16, 'text-anchor': 'middle' }, short(bar * width)));
  }
}

function drawLimitUpwards({ root, inner }, limit, isShown, reach) {
  if (limit === null || !isShown) return;
  const x = inner.left + ((limit + 1) / reach) * (inner.right - inner.left);
  const anchor = x > (inner.left + inner.right) / 2 ? 'end' : 'start';
  root.append(
    svg('line', { class: 'limit', x1: x, x2: x, y1: inner.top - 8, y2: inner.bottom }),
    svg(
      'text',
      { class: 'limit-label', x: anchor === 'end' ? x - 6 : x + 6, y: inner.top + 2, 'text-anchor': anchor },
      `limit ${count(limit)}`,
    ),
  );
}
