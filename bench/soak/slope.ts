/** A straight line through points by least squares. */
export interface Slope {
  readonly perUnit: number;
  /** The slope lies within so much of `perUnit` with 95 % confidence, if the points scatter independently. */
  readonly within: number;
}

/** Of the normal distribution: right for more than some 30 points. */
const CONFIDENCE_95 = 1.96;

/** @param points x and y, at least three with different x */
export function slopeOf(points: readonly (readonly [number, number])[]): Slope {
  const count = points.length;
  const meanX = points.reduce((total, [x]) => total + x, 0) / count;
  const meanY = points.reduce((total, [, y]) => total + y, 0) / count;
  const spread = points.reduce((total, [x]) => total + (x - meanX) ** 2, 0);
  const perUnit = points.reduce((total, [x, y]) => total + (x - meanX) * (y - meanY), 0) / spread;
  const residual = points.reduce((total, [x, y]) => total + (y - meanY - perUnit * (x - meanX)) ** 2, 0);
  return { perUnit, within: CONFIDENCE_95 * Math.sqrt(residual / (count - 2) / spread) };
}
