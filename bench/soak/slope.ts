/** A straight line through points by least squares. */
export interface Slope {
  readonly perUnit: number;
  /**
   * With 95 % confidence the slope differs from `perUnit` by no more than this. Neighbouring points resemble each other, so the error is
   * the same as for fewer independent points: `count * (1 - r) / (1 + r)`, with r the correlation of neighbours.
   */
  readonly within: number;
}

/** Of the normal distribution: right for more than some 30 points. */
const CONFIDENCE_95 = 1.96;

/** @param points x and y, evenly spaced, at least three with different x */
export function slopeOf(points: readonly (readonly [number, number])[]): Slope {
  const count = points.length;
  const meanX = points.reduce((total, [x]) => total + x, 0) / count;
  const meanY = points.reduce((total, [, y]) => total + y, 0) / count;
  const spread = points.reduce((total, [x]) => total + (x - meanX) ** 2, 0);
  const perUnit = points.reduce((total, [x, y]) => total + (x - meanX) * (y - meanY), 0) / spread;
  const rests = points.map(([x, y]) => y - meanY - perUnit * (x - meanX));
  const residual = rests.reduce((total, rest) => total + rest ** 2, 0);
  const likeness = correlationOfNeighbours(rests, residual);
  const error = Math.sqrt((residual / (count - 2) / spread) * ((1 + likeness) / (1 - likeness)));
  return { perUnit, within: CONFIDENCE_95 * error };
}

/** From 0 to below 1; points that alternate count as independent. */
function correlationOfNeighbours(rests: readonly number[], residual: number): number {
  if (residual === 0) return 0;
  const products = rests.slice(1).reduce((total, rest, index) => total + rest * (rests[index] ?? 0), 0);
  return Math.min(0.99, Math.max(0, products / residual));
}
