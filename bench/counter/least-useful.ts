import type { Bursts } from '../../test/store/bursts.ts';
import { type Groups, HAND_MADE } from '../../test/store/groups.ts';
import { type Found, leastUsefulBursts, leastUsefulGroups } from '../../test/store/least-useful.ts';
import { thousands } from '../report/section.ts';

/** Random patterns that each search judges. */
const TRIES = { bursts: 5000, groups: 1000 };

/** Searches for the patterns of which the counter admits least, beside an exact sliding log. */
export async function findLeastUseful(share: number): Promise<string[]> {
  const seed = Date.now() % 1_000_000;
  const bursts = await leastUsefulBursts(TRIES.bursts * share, seed);
  const groups = await leastUsefulGroups(TRIES.groups * share, seed);
  return textOf(bursts, groups, share);
}

function textOf(bursts: Found<Bursts>, groups: Found<Groups>, share: number): string[] {
  const { limit, count, period } = groups.pattern;
  const together = groups.pattern.groups.map(
    ({ at, cost, requests }) => `${requests} of cost ${cost} at ${fraction(at)}`,
  );
  return [
    `**The least useful patterns** for one bucket, tried on the memory store, which is the same algorithm. Of ${HAND_MADE.length} patterns of simultaneous requests made by hand`,
    `and ${thousands(TRIES.groups * share)} that a search tried, the worst got ${groups.share.toFixed(4)} of what an exact sliding log admits: limit ${limit}, ${count} periods of ${windows(period)}, in each`,
    `${together.join(', ')} of a window. ${burstsText(bursts, TRIES.bursts * share)}`,
  ];
}

function burstsText({ pattern, share }: Found<Bursts>, tries: number): string {
  const { limit, count, period, width, jitter, size, costs, last } = pattern;
  return [
    `Of ${thousands(tries)} random patterns of bursts, the worst`,
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
