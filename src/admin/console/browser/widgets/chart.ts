import { element, setText, svgElement } from './dom.ts';

/** One line of a chart. */
export interface Line {
  readonly name: string;
  /** A class of the style sheet: colour and dashes. */
  readonly style: string;
  readonly values: readonly (number | null)[];
  /** Fills the area below the line. */
  readonly isFilled?: boolean;
}

export interface ChartOptions {
  readonly title: string;
  readonly unit: string;
  format(value: number): string;
}

/** In units of the drawing, which grow with the text of the page: 15 of them are its font size. */
const FONT_SIZE = 15;
const HEIGHT = 168;
const LEFT = 44;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 22;
const GRID_LINES = 3;

/**
 * The last minute as lines over time. The legend shows the newest values, or those of the second under the pointer or
 * chosen with the arrow keys.
 */
export class Chart {
  readonly node = element('figure', { class: 'panel chart' });
  readonly #options: ChartOptions;
  readonly #drawing = svgElement('svg', { role: 'img', tabindex: 0 });
  readonly #grid = svgElement('g', { class: 'grid' });
  readonly #plot = svgElement('g', {});
  readonly #cursor = svgElement('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM });
  readonly #legend = element('ul', { class: 'legend' });
  readonly #when = element('span', { class: 'muted' });
  #lines: readonly Line[] = [];
  /** Seconds back from the newest value. */
  #chosen: number | undefined;
  #width = 0;
  #scale = 1;

  constructor(options: ChartOptions) {
    this.#options = options;
    const caption = element('figcaption', {}, element('h2', {}, options.title), this.#when);
    this.#drawing.append(this.#grid, this.#plot, this.#cursor);
    this.node.append(caption, this.#drawing, this.#legend);
    new ResizeObserver(([entry]) => {
      this.#scale = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / FONT_SIZE;
      this.#width = Math.floor((entry?.contentRect.width ?? 0) / this.#scale);
      this.#draw();
    }).observe(this.#drawing);
    this.#followPointer();
  }

  show(lines: readonly Line[]): void {
    this.#lines = lines;
    this.#draw();
  }

  get #length(): number {
    return this.#lines[0]?.values.length ?? 0;
  }

  #draw(): void {
    if (this.#width === 0 || this.#length === 0) return;
    this.#drawing.setAttribute('viewBox', `0 0 ${this.#width} ${HEIGHT}`);
    const highest = Math.max(0, ...this.#lines.flatMap(({ values }) => values.map(Number)));
    const top = roundUp(highest);
    this.#drawGrid(top);
    this.#plot.replaceChildren(...this.#lines.filter(hasValues).flatMap((line) => this.#pathsOf(line, top)));
    this.#showValues();
  }

  #drawGrid(top: number): void {
    const parts: SVGElement[] = [];
    for (let step = 0; step <= GRID_LINES; step++) {
      const value = (top * step) / GRID_LINES;
      const y = this.#y(value, top);
      const label = svgElement('text', { x: LEFT - 8, y: y + 4, class: 'at-end' });
      label.textContent = this.#options.format(value);
      parts.push(svgElement('line', { x1: LEFT, x2: this.#width - RIGHT, y1: y, y2: y }), label);
    }
    for (const back of [60, 45, 30, 15, 0]) {
      const label = svgElement('text', {
        x: this.#x(back),
        y: HEIGHT - 5,
        class: back === 0 ? 'at-end' : 'centred',
      });
      label.textContent = back === 0 ? 'now' : `−${back} s`;
      if (back < this.#length) parts.push(label);
    }
    this.#grid.replaceChildren(...parts);
  }

  #pathsOf({ values, style, isFilled }: Line, top: number): SVGElement[] {
    const runs: string[][] = [[]];
    for (const [index, value] of values.entries()) {
      if (value === null) runs.push([]);
      else
        runs
          .at(-1)
          ?.push(`${this.#x(values.length - 1 - index).toFixed(1)} ${this.#y(value, top).toFixed(1)}`);
    }
    const drawn = runs.filter((run) => run.length > 0);
    const line = drawn.map((run) => `M${run.join('L')}${run.length === 1 ? 'h.1' : ''}`).join('');
    const paths: SVGElement[] = [svgElement('path', { class: `line ${style}`, d: line })];
    if (isFilled) {
      const foot = HEIGHT - BOTTOM;
      const area = drawn.map((run) => `M${run.join('L')}V${foot}H${run[0]?.split(' ')[0]}Z`).join('');
      paths.unshift(svgElement('path', { class: `area ${style}`, d: area }));
    }
    return paths;
  }

  #x(back: number): number {
    const share = 1 - back / Math.max(1, this.#length - 1);
    return LEFT + share * (this.#width - LEFT - RIGHT);
  }

  #y(value: number, top: number): number {
    return TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  }

  #showValues(): void {
    const back = this.#chosen ?? 0;
    const { format, unit, title } = this.#options;
    const entries = this.#lines.map(({ name, style, values }) => {
      const value = values.at(-1 - back) ?? null;
      const sample = svgElement('svg', { viewBox: '0 0 22 8', class: 'sample', 'aria-hidden': 'true' });
      sample.append(svgElement('path', { class: `line ${style}`, d: 'M0 4H22' }));
      return element('li', {}, sample, `${name} `, element('b', {}, value === null ? '–' : format(value)));
    });
    this.#legend.replaceChildren(...entries);
    setText(this.#when, this.#chosen === undefined ? unit : `${unit}, ${back} s ago`);
    this.#drawing.setAttribute('aria-label', `${title}: ${entries.map((one) => one.textContent).join(', ')}`);
    this.#cursor.setAttribute('x1', String(this.#x(back)));
    this.#cursor.setAttribute('x2', String(this.#x(back)));
    this.#cursor.classList.toggle('shown', this.#chosen !== undefined);
  }

  #followPointer(): void {
    const choose = (back: number | undefined) => {
      this.#chosen = back === undefined ? undefined : Math.min(Math.max(0, back), this.#length - 1);
      this.#showValues();
    };
    this.#drawing.addEventListener('pointermove', ({ offsetX }) => {
      const share = (offsetX / this.#scale - LEFT) / (this.#width - LEFT - RIGHT);
      choose(Math.round((1 - share) * (this.#length - 1)));
    });
    for (const event of ['pointerleave', 'blur'])
      this.#drawing.addEventListener(event, () => choose(undefined));
    this.#drawing.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      choose((this.#chosen ?? 0) + step);
    });
  }
}

/** Lines that are zero all along would only cover each other. */
function hasValues({ values }: Line): boolean {
  return values.some((value) => value !== null && value > 0);
}

/** The next of 3, 6, 15, 30, 60, 150 …, which divide into three round parts. */
function roundUp(value: number): number {
  if (value <= 3) return 3;
  const power = 10 ** Math.floor(Math.log10(value / 3));
  return [3, 6, 15, 30].map((one) => one * power).find((one) => one >= value) ?? 30 * power;
}
