/** What the charts of the console and of the replay's report are drawn of. */
import { svgElement } from './dom.ts';

/** One line of a chart. */
export interface Line {
  readonly name: string;
  /** A class of the style sheet: colour and dashes. */
  readonly style: string;
  readonly values: readonly (number | null)[];
  /** Fills the area below the line. */
  readonly isFilled?: boolean;
}

/** The edges of the values within a drawing. */
interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Places values within a drawing, from 0 at its bottom to a round number at its top. */
export class Plot {
  readonly area: Area;
  readonly #ticks: readonly number[];
  readonly #top: number;

  /** @param most the largest value */
  constructor(area: Area, most: number) {
    this.area = area;
    this.#ticks = niceTicks(most);
    this.#top = Math.max(most, this.#ticks.at(-1) ?? 0) || 1;
  }

  /** @param share of the width, from the left */
  x(share: number): number {
    return this.area.left + share * (this.area.right - this.area.left);
  }

  y(value: number): number {
    const { top, bottom } = this.area;
    return bottom - (Math.min(value, this.#top) / this.#top) * (bottom - top);
  }

  /** The share of the width at a place. */
  shareAt(x: number): number {
    return (x - this.area.left) / (this.area.right - this.area.left);
  }

  /** A line and a label for each round number. */
  grid(format: (value: number) => string): SVGGElement {
    const { left, right } = this.area;
    const parts = this.#ticks.flatMap((tick) => {
      const y = Math.round(this.y(tick)) + 0.5;
      return [
        svgElement('line', { class: tick === 0 && 'base', x1: left, x2: right, y1: y, y2: y }),
        svgElement('text', { x: left - 8, y: y + 4, 'text-anchor': 'end' }, format(tick)),
      ];
    });
    return svgElement('g', { class: 'grid' }, ...parts);
  }

  /** A label below the values. */
  mark(share: number, text: string, anchor: 'start' | 'middle' | 'end' = 'middle'): SVGTextElement {
    const place = { x: this.x(share), y: this.area.bottom + 16 };
    return svgElement('text', { ...place, 'text-anchor': anchor }, text);
  }

  /**
   * A line with gaps where it has no value.
   *
   * @param shares where each value begins and ends; without an end, values are joined
   */
  paths(
    { values, style, isFilled }: Line,
    shares: (index: number) => readonly [from: number, to?: number],
  ): SVGPathElement[] {
    const runs: string[][] = [[]];
    for (const [index, value] of values.entries()) {
      const [from, to] = shares(index);
      if (value === null) runs.push([]);
      else runs.at(-1)?.push(`${this.x(from).toFixed(1)} ${this.y(value).toFixed(1)}${this.#step(to)}`);
    }
    const drawn = runs.filter((run) => run.length > 0);
    const line = drawn.map((run) => `M${run.join('L')}${run.length === 1 ? 'h.1' : ''}`).join('');
    const { bottom } = this.area;
    const fills = drawn.map((run) => `M${run.join('L')}V${bottom}H${run[0]?.split(' ')[0]}Z`).join('');
    const area = isFilled ? [svgElement('path', { class: `area ${style}`, d: fills })] : [];
    return [...area, svgElement('path', { class: `line ${style}`, d: line })];
  }

  #step(to: number | undefined): string {
    return to === undefined ? '' : `H${this.x(to).toFixed(1)}`;
  }
}

/** About four round numbers from 0 to the value. */
function niceTicks(most: number): readonly number[] {
  if (most <= 0) return [0];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}
