import { roundedDuration } from '../../../domain/duration.ts';
import { element, setText, svgElement } from './dom.ts';
import { type ChartLine, Drawing, type Plot } from './plot.ts';

/** What the values of a chart are, besides their size. By default they are of single seconds, and cover all replicas. */
const SECONDS = {
  /** Seconds between two values. */
  stepSeconds: 1,
  /** How long ago the newest ended. */
  endAgoSeconds: 0,
  /** How many of the newest values do not cover all replicas. */
  partialSteps: 0,
  /** Which replicas they cover. */
  partialText: '',
};

/** A newest value that ended longer ago is not labelled `now`. */
const NOW_SECONDS = 15;

/** Something that happened, marked in a chart. */
export interface ChartMark {
  readonly agoSeconds: number;
  readonly text: string;
}

/** The scale of a chart without traffic. */
const LEAST = 3;

/**
 * The last minutes as lines over time. The legend shows the newest values, or the values at the time under the pointer, which the
 * arrow keys choose as well.
 */
export class Chart {
  readonly node = element('figure', { class: 'panel chart' });
  readonly #title: string;
  readonly #unit: string;
  readonly #format: (value: number) => string;
  readonly #drawing = new Drawing({ tabindex: 0 }, () => this.#draw());
  readonly #legend = element('ul', { class: 'legend' });
  readonly #when = element('span', { class: 'muted' });
  #lines: readonly ChartLine[] = [];
  #marks: readonly ChartMark[] = [];
  #steps = SECONDS;
  /** Seconds back from the newest value. */
  #chosen: number | undefined;
  #cursor: SVGLineElement | undefined;

  constructor(title: string, unit: string, format: (value: number) => string) {
    this.#title = title;
    this.#unit = unit;
    this.#format = format;
    const caption = element('figcaption', {}, element('h2', {}, title), this.#when);
    this.node.append(caption, this.#drawing.svg, this.#legend);
    this.#followPointer();
  }

  show(lines: readonly ChartLine[]): void {
    this.#lines = lines;
    this.#draw();
  }

  /** Marks what happened, and says what the values are, from the next drawing on. */
  mark(marks: readonly ChartMark[], steps = SECONDS): void {
    this.#marks = marks;
    this.#steps = steps;
  }

  get #length(): number {
    return this.#lines[0]?.values.length ?? 0;
  }

  #draw(): void {
    if (!this.#drawing.hasSize || this.#length === 0) return;
    const highest = Math.max(LEAST, ...this.#lines.flatMap(({ values }) => values.map(Number)));
    const plot = this.#drawing.plot(highest);
    const marks = [60, 45, 30, 15, 0]
      .filter((back) => back < this.#length)
      .map((back) => plot.mark(this.#shareOf(back), back === 0 ? this.#endText : `−${this.#ageOf(back)}`));
    const grid = plot.grid(this.#format);
    grid.append(...marks);
    const paths = this.#lines
      .filter(hasValues)
      .flatMap((line) => plot.paths(line, (index) => [this.#shareOf(line.values.length - 1 - index)]));
    const partial = this.#partialIn(plot);
    this.#cursor = plot.upright(1, 'cursor');
    this.#drawing.svg.replaceChildren(grid, ...partial, ...paths, ...this.#marksIn(plot), this.#cursor);
    this.#showValues();
  }

  /** A line at each change, with its text on hover. */
  #marksIn(plot: Plot): readonly SVGElement[] {
    const { stepSeconds } = this.#steps;
    return this.#marks
      .map(({ agoSeconds, text }) => ({ share: this.#shareOf(agoSeconds / stepSeconds), text }))
      .filter(({ share }) => share >= 0 && share <= 1)
      .map(({ share, text }) => {
        const line = plot.upright(share, 'change');
        line.append(svgElement('title', {}, text));
        return line;
      });
  }

  /** Marks the values that do not cover all replicas. */
  #partialIn(plot: Plot): readonly SVGElement[] {
    const { partialSteps, partialText } = this.#steps;
    if (partialSteps === 0) return [];
    const x = plot.x(this.#shareOf(Math.min(partialSteps, this.#length - 1)));
    const { top, bottom } = plot.area;
    const place = { x, y: top, width: plot.x(1) - x, height: bottom - top };
    return [svgElement('rect', { class: 'partial', ...place }, svgElement('title', {}, partialText))];
  }

  get #endText(): string {
    const { endAgoSeconds, stepSeconds } = this.#steps;
    return endAgoSeconds < NOW_SECONDS ? 'now' : `−${this.#ageOf(Math.round(endAgoSeconds) / stepSeconds)}`;
  }

  /** Such as `15 s`, or `7.5 min` of values that are ten seconds apart. */
  #ageOf(back: number): string {
    return roundedDuration(
      Math.round(back * this.#steps.stepSeconds),
      (count) => Math.round(count * 10) / 10,
    );
  }

  /** The place of a value that is so many seconds old. */
  #shareOf(back: number): number {
    return 1 - back / Math.max(1, this.#length - 1);
  }

  #showValues(): void {
    const back = this.#chosen ?? 0;
    const entries = this.#lines.map(({ name, style, values }) => {
      const value = values.at(-1 - back) ?? null;
      const sample = svgElement(
        'svg',
        { viewBox: '0 0 22 8', class: 'sample', 'aria-hidden': 'true' },
        svgElement('path', { class: `line ${style}`, d: 'M0 4H22' }),
      );
      return element(
        'li',
        {},
        sample,
        `${name} `,
        element('b', {}, value === null ? '–' : this.#format(value)),
      );
    });
    this.#legend.replaceChildren(...entries);
    const { partialSteps, partialText } = this.#steps;
    const isPartial = partialSteps > back;
    const parts = [this.#unit, ...(this.#chosen === undefined ? [] : [`${this.#ageOf(back)} ago`])];
    setText(this.#when, [...parts, ...(isPartial ? [partialText] : [])].join(', '));
    this.#drawing.svg.setAttribute(
      'aria-label',
      `${this.#title}: ${entries.map((one) => one.textContent).join(', ')}`,
    );
    const x = String(this.#drawing.plot().x(this.#shareOf(back)));
    for (const end of ['x1', 'x2']) this.#cursor?.setAttribute(end, x);
    this.#cursor?.classList.toggle('shown', this.#chosen !== undefined);
  }

  #followPointer(): void {
    const choose = (back: number | undefined) => {
      this.#chosen = back === undefined ? undefined : Math.min(Math.max(0, back), this.#length - 1);
      this.#showValues();
    };
    const { svg } = this.#drawing;
    svg.addEventListener('pointermove', (event) => {
      choose(Math.round((1 - this.#drawing.shareAt(event)) * (this.#length - 1)));
    });
    for (const event of ['pointerleave', 'blur']) svg.addEventListener(event, () => choose(undefined));
    svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      choose((this.#chosen ?? 0) + step);
    });
  }
}

/** Lines that are zero all along would only cover each other. */
function hasValues({ values }: ChartLine): boolean {
  return values.some((value) => value !== null && value > 0);
}

/** A line of the last values, filled to its foot. It is decoration: the numbers next to it say the same. */
export class Sparkline {
  readonly node = svgElement('svg', {
    class: 'sparkline',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  readonly #line = svgElement('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  readonly #area = svgElement('path', { class: 'area' });
  readonly #foot = svgElement('path', { class: 'foot', 'vector-effect': 'non-scaling-stroke' });

  constructor() {
    this.node.append(this.#foot, this.#area, this.#line);
  }

  /**
   * Draws the values, the newest at the right, up to `top`, over a line at 0 that is as long as the width.
   *
   * @param length values that fill the width; fewer fill the right part of it
   */
  draw(values: readonly number[], length: number, top = Math.max(...values, 1)): void {
    const from = length - values.length;
    const width = Math.max(1, length - 1);
    this.node.setAttribute('viewBox', `0 0 ${width} 24`);
    this.#foot.setAttribute('d', `M0 23H${width}`);
    const points = values.map(
      (value, index) => `${from + index} ${(23 - (22 * Math.min(value, top)) / top).toFixed(2)}`,
    );
    const line = points.length === 0 ? '' : `M${points.join('L')}`;
    this.#line.setAttribute('d', line);
    this.#area.setAttribute('d', line === '' ? '' : `${line}V24H${from}Z`);
  }
}
