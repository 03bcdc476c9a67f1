import { shownCount, shownShare } from '../../../domain/shown.ts';
import { svgElement } from '../widgets/dom.ts';
import { Drawing, type Plot } from '../widgets/plot.ts';
import { describeOnHover, isInReach, limitLabel, short } from './charts.ts';

const MOST_BARS = 48;

/**
 * How many windows had how many points, with the limit; the bars above it are those with refusals.
 *
 * @param windows ascending
 */
export function windowsChart(
  box: HTMLElement,
  label: string,
  windows: readonly (readonly [points: number, windowCount: number])[],
  limit: number | null,
): void {
  const largest = windows.at(-1)?.[0] ?? 1;
  const isShown = isInReach(limit, largest);
  const reach = isShown ? Math.max(largest, limit) : largest;
  const width = Math.max(1, Math.ceil((reach + 1) / MOST_BARS));
  const bars = new Array<number>(Math.ceil((reach + 1) / width)).fill(0);
  for (const [points, windowCount] of windows) {
    const bar = Math.floor(points / width);
    bars[bar] = (bars[bar] ?? 0) + windowCount;
  }
  const total = bars.reduce((sum, one) => sum + one, 0);
  const drawing = new Drawing({ 'aria-label': label }, () => {
    const plot = drawing.plot(Math.ceil(height(Math.max(1, ...bars))));
    drawing.svg.replaceChildren(
      plot.grid((power) => (Number.isInteger(power) ? short(power === 0 ? 0 : 10 ** (power - 1)) : '')),
      ...barsIn(plot, bars, (bar) => limit !== null && bar * width > limit),
      ...marksIn(plot, bars.length, width),
      ...(isShown ? limitUpwards(plot, limit, (limit + 1) / (bars.length * width)) : []),
    );
  });
  box.replaceChildren(drawing.svg);
  describeOnHover(drawing, (share) => {
    const bar = Math.floor(share * bars.length);
    const windowCount = bars[bar];
    if (windowCount === undefined) return undefined;
    const [first, last] = [shownCount(bar * width), shownCount((bar + 1) * width - 1)];
    return {
      share: (bar + 0.5) / bars.length,
      title: `${width === 1 ? first : `${first} to ${last}`} points`,
      lines: [`${shownCount(windowCount)} windows, ${shownShare(windowCount / total)}`],
    };
  });
}

/** Few windows are full and many nearly empty: on a plain scale the full ones could not be seen. Each power of ten has a line. */
function height(value: number): number {
  return value < 1 ? 0 : 1 + Math.log10(value);
}

function barsIn(plot: Plot, bars: readonly number[], isOver: (bar: number) => boolean): SVGElement[] {
  const step = plot.x(1 / bars.length) - plot.x(0);
  return [...bars.entries()]
    .filter(([, value]) => value > 0)
    .map(([bar, value]) => {
      const top = plot.y(height(value));
      return svgElement('rect', {
        class: isOver(bar) ? 'bar over' : 'bar',
        x: plot.x(bar / bars.length) + Math.min(1, step / 8),
        y: top,
        width: Math.max(1, step - Math.min(2, step / 4)),
        height: plot.area.bottom - top,
        rx: Math.min(2, step / 4),
      });
    });
}

function marksIn(plot: Plot, barCount: number, width: number): SVGElement[] {
  const step = plot.x(1 / barCount) - plot.x(0);
  const every = Math.max(1, Math.ceil(60 / step));
  return Array.from({ length: Math.ceil(barCount / every) }, (_, index) =>
    plot.mark((index * every + 0.5) / barCount, short(index * every * width)),
  );
}

function limitUpwards(plot: Plot, limit: number, share: number): SVGElement[] {
  const x = plot.x(share);
  const [place, anchor] = share > 0.5 ? [x - 6, 'end'] : [x + 6, 'start'];
  const label = limitLabel(limit, { x: place, y: plot.area.top + 2, 'text-anchor': anchor });
  return [plot.upright(share, 'limit'), label];
}
