import type { Limits } from '../../domain/limits/limits.ts';
import { isCharged, type LimitRow } from '../../domain/limits/rows.ts';
import { formatPath, type Problem } from '../problem.ts';
import {
  atMost,
  type CostedOperation,
  type LimitPlaces,
  mostOf,
  raiseOrLower,
  visitLimits,
} from './costs.ts';

/** A limit that is lower than this many times a cost is reported: the bucket may refuse a tenth of its points. */
const COSTS_PER_LIMIT = 10;

/** Charges of different times count as one while they hold at most this part of the limit together (lua/README.md). */
const ENTRIES_PER_LIMIT = 250;

/** A limit whose bucket may leave a part of its points unused. */
interface UnusedPoints {
  readonly path: readonly string[];
  readonly limit: number;
  readonly leastPercent: number;
  readonly costliest: CostedOperation;
}

/**
 * The limits (of defaults, plans and overrides) that are so low for a cost that their buckets may refuse much of what an exact log would
 * admit. Shadow limits refuse nothing.
 */
export function findUnusedPoints(
  operations: readonly CostedOperation[],
  limits: Limits,
): readonly UnusedPoints[] {
  const costs = costsByRow(operations, limits.rows);
  const found: UnusedPoints[] = [];
  visitLimits(limits, (given, pathOf) => {
    for (const name in given) {
      const { limit, shadow } = given[name] ?? {};
      const charged = costs.get(name);
      if (charged === undefined || shadow || typeof limit !== 'number') continue;
      const { cheapest, costliest } = charged;
      const leastPercent = leastPercentOf(limit, cheapest, costliest.cost);
      if (leastPercent < 100 && limit < COSTS_PER_LIMIT * costliest.cost)
        found.push({ path: pathOf(name), limit, leastPercent, costliest });
    }
  });
  return found;
}

export function unusedPointsWarning(
  { path, limit, leastPercent, costliest }: UnusedPoints,
  places: LimitPlaces,
): Problem {
  return {
    ...places.locate(path),
    path: formatPath(path),
    message: `may admit as little as ${leastPercent} % of its points, because the limit ${limit} is below ten times ${mostOf(costliest)}`,
    hint: raiseOrLower(COSTS_PER_LIMIT * costliest.cost, costliest),
  };
}

/**
 * By the name of a row, of the operations that are charged to it: the lowest cost, and the operation with the highest. Only of rows that
 * count points in a sliding window: the count of a period is exact.
 */
function costsByRow(operations: readonly CostedOperation[], rows: readonly LimitRow[]) {
  const costs = new Map<string, { readonly cheapest: number; readonly costliest: CostedOperation }>();
  for (const row of rows.filter(({ counts, period }) => counts === 'points' && period === undefined)) {
    const charged = operations.filter((operation) => operation.cost > 0 && isCharged(row, operation));
    const costliest = charged.map(atMost).reduce(higher, undefined);
    if (costliest === undefined) continue;
    // A body may ask to reserve a single point.
    const cheapest = Math.min(...charged.map(({ cost, settlement }) => (settlement?.reserve ? 1 : cost)));
    costs.set(row.name, { cheapest, costliest });
  }
  return costs;
}

function higher(one: CostedOperation | undefined, other: CostedOperation): CostedOperation {
  return one !== undefined && one.cost >= other.cost ? one : other;
}

/**
 * The least share of an exact log's points that a bucket admits which is charged alone, in whole percent. lua/README.md has the proof. It
 * is 100 where no two charges of different times are counted as one: below a limit of 500, and where the lowest cost is high too.
 */
function leastPercentOf(limit: number, cheapest: number, highest: number): number {
  const mostTogether = Math.floor(limit / ENTRIES_PER_LIMIT);
  if (2 * cheapest > mostTogether) return 100;
  const keptTooLong = mostTogether - cheapest;
  const least = limit - (highest - 1) - keptTooLong;
  return Math.max(0, Math.floor((100 * least) / limit));
}
