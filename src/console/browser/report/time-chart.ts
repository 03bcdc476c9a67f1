import { roundedDuration } from '../../../domain/duration.ts';
import { shownCount, shownTime } from '../../../domain/shown.ts';
import type { Bins } from '../../../replay/measure/series.ts';
import { svgElement } from '../widgets/dom.ts';
import { type ChartLine, Drawing, type Plot } from '../widgets/plot.ts';
import { describeOnHover, isInReach, limitLabel, short, timeMarks } from './charts.ts';

/** Draws values over time as lines. */
export function timeChart(
  box: HTMLElement,
  chart: {
    readonly label: string;
    readonly bins: Bins<string>;
    /** A value for each bin. */
    readonly lines: readonly (ChartLine & { readonly values: readonly number[] })[];
    /** Drawn as a dashed line. */
    readonly limit?: number | null;
    /** How values are written. Default: short on the axis, and whole in the tip. */
    format?(value: number): string;
  },
): void {
  const { label, bins, lines, limit = null, format } = chart;
  const fromMs = bins.startUs / 1_000;
  const binMs = bins.binUs / 1_000;
  const length = Math.max(1, ...lines.map(({ values }) => values.length));
  const most = Math.max(0, ...lines.flatMap(({ values }) => values));
  const highest = isInReach(limit, most) ? Math.max(most, limit * 1.1) : most;
  const drawing = new Drawing({ 'aria-label': label }, () => {
    const plot = drawing.plot(highest);
    drawing.svg.replaceChildren(
      plot.grid(format ?? short),
      ...lines
        .filter(({ values }) => values.length > 0)
        .flatMap((line) => plot.paths(line, (bin) => [bin / length, (bin + 1) / length])),
      ...(limit === null ? [] : limitAcross(plot, limit, isInReach(limit, most))),
      ...timeMarks(plot, fromMs, fromMs + length * binMs),
    );
  });
  box.replaceChildren(drawing.svg);
  describeOnHover(drawing, (share) => {
    const bin = Math.floor(share * length);
    if (bin < 0 || bin >= length) return undefined;
    return {
      share: (bin + 0.5) / length,
      title: `${shownTime(fromMs + bin * binMs)}, ${roundedDuration(binMs / 1_000)}`,
      lines: lines.map(({ name, values }) => `${name}: ${(format ?? shownCount)(values[bin] ?? 0)}`),
    };
  });
}

/** Of the label of a limit, from its baseline up. */
const LABEL_HEIGHT = 15;

function limitAcross(plot: Plot, limit: number, isShown: boolean): SVGElement[] {
  const { left, right, top } = plot.area;
  const y = isShown ? Math.round(plot.y(limit)) + 0.5 : top;
  // At the top of the chart there is no room above the line.
  const baseline = y - 5 < LABEL_HEIGHT ? y + LABEL_HEIGHT : y - 5;
  const place = { x: right - 4, y: baseline, 'text-anchor': 'end' };
  if (!isShown) return [limitLabel(limit, place, ', above this chart ↑')];
  const line = svgElement('line', { class: 'limit', x1: left, x2: right, y1: y, y2: y });
  return [line, limitLabel(limit, place)];
}
