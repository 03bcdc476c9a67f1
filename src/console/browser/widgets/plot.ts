/** What the charts of the console and of the replay's report are drawn of. */
import { svgElement } from './dom.ts';

/** One line of a chart. */
export interface ChartLine {
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

/** In units of the drawing, which grow with the text of the page: 15 of them are its font size. */
const FONT_SIZE = 15;
const MARGIN: Area = { left: 44, right: 10, top: 12, bottom: 22 };

/** A drawing that fills its box. It is drawn when its size is known, and again whenever that changes. */
export class Drawing {
  readonly svg: SVGSVGElement;
  #width = 0;
  #height = 0;
  #scale = 1;

  constructor(attributes: Readonly<Record<string, string | number>>, draw: () => void) {
    this.svg = svgElement('svg', { role: 'img', ...attributes });
    new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      this.#scale = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / FONT_SIZE;
      this.#width = Math.floor(width / this.#scale);
      this.#height = Math.floor(height / this.#scale);
      this.svg.setAttribute('viewBox', `0 0 ${this.#width} ${this.#height}`);
      if (this.hasSize) draw();
    }).observe(this.svg);
  }

  /** False while the page is not laid out, or the drawing is hidden. */
  get hasSize(): boolean {
    return this.#width > 0 && this.#height > 0;
  }

  /** @param most the largest value */
  plot(most = 0): Plot {
    const { left, right, top, bottom } = MARGIN;
    return new Plot({ left, right: this.#width - right, top, bottom: this.#height - bottom }, most);
  }

  /** The share of the plot's width at which the pointer is. */
  shareAt({ offsetX }: PointerEvent): number {
    return this.plot().shareAt(offsetX / this.#scale);
  }
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

  /** A label below the values. Near an edge it is kept within the plot. */
  mark(share: number, text: string): SVGTextElement {
    const x = this.x(share);
    const { left, right, bottom } = this.area;
    const anchor = x < left + 20 ? 'start' : x > right - 20 ? 'end' : 'middle';
    return svgElement('text', { x, y: bottom + 16, 'text-anchor': anchor }, text);
  }

  /** A line from the top to the bottom. */
  upright(share: number, style: string): SVGLineElement {
    const x = this.x(share).toFixed(1);
    return svgElement('line', { class: style, x1: x, x2: x, y1: this.area.top, y2: this.area.bottom });
  }

  /**
   * A line with gaps where it has no value.
   *
   * @param shares where each value begins and ends; without an end, values are joined
   */
  paths(
    { values, style, isFilled }: ChartLine,
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
