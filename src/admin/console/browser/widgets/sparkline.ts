import { svgElement } from './dom.ts';

/** A line of the last values, filled to its foot. It is decoration: the numbers next to it say the same. */
export class Sparkline {
  readonly node = svgElement('svg', {
    class: 'sparkline',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  readonly #line = svgElement('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  readonly #area = svgElement('path', { class: 'area' });
  readonly #length: number;

  /** @param length values that fill the width */
  constructor(length: number) {
    this.#length = length;
    this.node.setAttribute('viewBox', `0 0 ${length - 1} 24`);
    this.node.append(this.#area, this.#line);
  }

  /** Draws the values, the newest at the right, up to `top`. */
  draw(values: readonly number[], top = Math.max(...values, 1)): void {
    const from = this.#length - values.length;
    const points = values.map(
      (value, index) => `${from + index} ${(23 - (22 * Math.min(value, top)) / top).toFixed(2)}`,
    );
    const line = points.length === 0 ? '' : `M${points.join('L')}`;
    this.#line.setAttribute('d', line);
    this.#area.setAttribute('d', line === '' ? '' : `${line}V24H${from}Z`);
  }
}
