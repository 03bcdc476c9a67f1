import { shownCount, shownShare } from '../../../replay/shown.ts';
import { svgElement } from '../../browser/widgets/dom.ts';
import { describeOnHover, drawLimit, frame, isInReach, short } from './frame.js';

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
  const drawn = frame(box, {
    label,
    most: Math.ceil(height(Math.max(1, ...bars))),
    format: (power) => (Number.isInteger(power) ? short(power === 0 ? 0 : 10 ** power) : ''),
  });
  const { root, plot } = drawn;
  const step = plot.x(1 / bars.length) - plot.x(0);
  for (const [bar, value] of bars.entries()) {
    if (value === 0) continue;
    const isOver = limit !== null && bar * width > limit;
    const top = plot.y(height(value));
    root.append(
      svgElement('rect', {
        class: isOver ? 'bar over' : 'bar',
        x: plot.x(bar / bars.length) + Math.min(1, step / 8),
        y: top,
        width: Math.max(1, step - Math.min(2, step / 4)),
        height: plot.area.bottom - top,
        rx: Math.min(2, step / 4),
      }),
    );
  }
  const every = Math.max(1, Math.ceil(60 / step));
  for (let bar = 0; bar < bars.length; bar += every) {
    root.append(plot.mark((bar + 0.5) / bars.length, short(bar * width)));
  }
  if (isInReach(limit, largest)) drawLimitUpwards(drawn, limit, bars.length * width);
  describeOnHover(drawn, (share) => {
    const bar = Math.floor(share * bars.length);
    if (bars[bar] === undefined) return undefined;
    const [first, last] = [bar * width, (bar + 1) * width - 1].map(shownCount);
    return {
      share: (bar + 0.5) / bars.length,
      title: `${width === 1 ? first : `${first} to ${last}`} points`,
      lines: [`${shownCount(bars[bar])} windows, ${shownShare(bars[bar] / total)}`],
    };
  });
}

function drawLimitUpwards({ root, plot }, limit, reach) {
  const { top, bottom } = plot.area;
  const share = (limit + 1) / reach;
  const x = plot.x(share);
  const [place, anchor] = share > 0.5 ? [x - 6, 'end'] : [x + 6, 'start'];
  const line = { x1: x, x2: x, y1: top - 8, y2: bottom };
  drawLimit(root, limit, line, { x: place, y: top + 2, 'text-anchor': anchor });
}
