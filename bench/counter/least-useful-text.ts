import type { Bursts } from '../../test/store/bursts.ts';
import { type Groups, HAND_MADE } from '../../test/store/groups.ts';
import type { Found } from '../../test/store/least-useful.ts';

export interface LeastUseful {
  readonly bursts: Found<Bursts>;
  readonly groups: Found<Groups>;
  /** Random patterns that each search judged. */
  readonly tries: { readonly bursts: number; readonly groups: number };
}

/** The worst patterns that the searches found, as a paragraph. */
export function leastUsefulText({ bursts, groups, tries }: LeastUseful): string {
  const { limit, count, period } = groups.pattern;
  const together = groups.pattern.groups.map(
    ({ at, cost, requests }) => `${requests} of cost ${cost} at ${fraction(at)}`,
  );
  return [
    `**The least useful patterns** for one bucket, tried on the memory store, which is the same algorithm. Of ${HAND_MADE.length} patterns of simultaneous requests made by hand`,
    `and ${tries.groups.toLocaleString('en')} that a search tried, the worst got ${groups.share.toFixed(4)} of what an exact sliding log admits: limit ${limit}, ${count} periods of ${windows(period)}, in each`,
    `${together.join(', ')} of a window. ${burstsText(bursts, tries.bursts)}`,
  ].join('\n');
}

function burstsText({ pattern, share }: Found<Bursts>, tries: number): string {
  const { limit, count, period, width, jitter, size, costs, last } = pattern;
  return [
    `Of ${tries.toLocaleString('en')} random patterns of bursts, the worst`,
    `got ${share.toFixed(4)}: limit ${limit}, ${count} bursts of ${Math.round(size * limit)} points, one each ${windows(period)}, ${windows(width)} wide,`,
    `up to ${windows(jitter)} late, costs ${costs.join(', ')} in turn${last > 0 ? `, and ${last} at the end of each` : ''}.`,
  ].join('\n');
}

function windows(of: number): string {
  return `${fraction(of)} windows`;
}

function fraction(of: number): string {
  return `${Number(of.toPrecision(3))}`;
}
