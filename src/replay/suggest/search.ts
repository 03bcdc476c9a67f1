import { calendarOf } from '../../domain/limits/calendar.ts';
import { largestLimitOf } from '../../domain/limits/rows.ts';
import type { BucketCharge } from '../../store/store.ts';
import type { BucketStats } from '../measure/bucket-stats.ts';
import { Charger } from '../replay.ts';
import { confidenceFrom, DayTally, daysOf, daysToKeep, type LogDays } from './days.ts';
import type { Demand } from './demand.ts';

export type Suggestion = ReturnType<typeof suggestLimits>;

/**
 * The smallest limit found that refuses no more than the allowed share, in the log and on enough of its days. One point less refuses too much,
 * or is no valid limit. The highest valid limit, if that refuses too much.
 */
export type SuggestedLimit = Suggestion['limits'][number];

interface Search {
  readonly stats: BucketStats;
  /** Refuses too much, or could never admit the most expensive request. */
  tooLow: number;
  /** Expected to be enough. `refused` is undefined until the limit was tried. */
  enough: number;
  refused: number | undefined;
  /** Whether even the highest valid limit refuses too much. */
  isTooLow: boolean;
  /** The limit being tried, with its refusals so far. Undefined once the search has ended. */
  trial: number | undefined;
  refusedInTrial: number;
  readonly logDays: LogDays;
  tally: DayTally;
}

/** What suggested limits have to achieve. */
export interface Aim {
  /** Share of a bucket's requests that a limit may refuse, from 0 to 1. */
  readonly mostRefused: number;
  /** Probability from 0 to below 1 with which a further day refuses no larger share. 0 considers the log as a whole only. */
  readonly confidence: number;
}

/**
 * A binary search for all buckets at once. Each pass over the requests tries one limit per bucket with the gateway's own
 * counter, which keeps its state from one day to the next. Every bucket is counted alone, as if no other bucket refused. Where costs differ, a lower limit can refuse fewer requests:
 * one expensive request that it refuses leaves room for several cheap ones. A search by halves does not find such a limit.
 */
export function suggestLimits(
  demand: Demand,
  options: Aim & {
    /** Lowest limit with which the gateway would load the file: the cost of the most expensive operation. */
    leastLimit(stats: BucketStats): number;
    /** Called before each pass over the requests, with the number of buckets still searched. */
    onPass(searched: number): void;
    /** Whether a bucket gets the limit that is found for it. Any other one keeps the limit that it has. */
    isGiven(stats: BucketStats): boolean;
  },
) {
  const { mostRefused, confidence } = options;
  const { fromUs = 0, toUs = 0 } = demand;
  const searches = demand.buckets.map((stats, number) => {
    const least = Math.max(demand.largestCost(number), options.leastLimit(stats));
    return startSearch(stats, least, mostRefused, daysOf(stats.row, fromUs, toUs));
  });
  for (;;) {
    const searched = searches.filter(({ trial }) => trial !== undefined).length;
    if (searched === 0) break;
    options.onPass(searched);
    tryLimits(demand, searches);
    for (const search of searches) settle(search, options);
  }
  const limits = searches.map(({ stats, enough, refused = 0, isTooLow, tally: { days } }) => ({
    stats,
    limit: enough,
    refused,
    isTooLow,
    /** Whole days of the log with requests of this bucket. */
    days,
    /** With which a further day refuses no larger share either. 0 if nothing is known about further days, or the limit is too low. */
    confidence: isTooLow ? 0 : confidenceFrom(days, confidence),
  }));
  /** `refused`: with all limits together, the given ones and those that are kept. `limits` has what each bucket alone would have refused. */
  return { limits, refused: refusedTogether(demand, limits, options) };
}

function startSearch(stats: BucketStats, least: number, mostRefused: number, logDays: LogDays): Search {
  const most = largestLimitOf(stats.row);
  const estimate = Math.min(most, Math.max(least, stats.windows.quantile(1 - mostRefused)));
  return {
    stats,
    tooLow: Math.min(least, most) - 1,
    enough: Math.min(most, Math.max(estimate, stats.fullestWindow)),
    refused: undefined,
    isTooLow: false,
    trial: estimate,
    refusedInTrial: 0,
    logDays,
    tally: new DayTally(logDays, mostRefused),
  };
}

function tryLimits(demand: Demand, searches: readonly Search[]): void {
  let nowUs = 0;
  const charger = new Charger(() => nowUs);
  const trials = searches.map(({ stats, trial }, number) => {
    return trial === undefined ? undefined : [bucketOf(stats, number, trial)];
  });
  const charge = (number: number, cost: number, reserved: number) => {
    const search = searches[number];
    const buckets = trials[number];
    if (search === undefined || buckets === undefined) return;
    const isRefused = charger.charge(buckets, cost, reserved).outcome === 'denied';
    if (isRefused) search.refusedInTrial += 1;
    search.tally.count(nowUs, isRefused);
  };
  demand.spool.forEach(({ atUs, cost, reserved, buckets }) => {
    nowUs = atUs;
    for (const bucket of buckets) charge(bucket, cost, reserved);
  });
}

function bucketOf({ row }: BucketStats, number: number, limit: number): BucketCharge {
  const { period } = row;
  return { ...row, key: String(number), limit, ...(period && { calendar: calendarOf(period) }) };
}

/** Evaluates a trial and sets the next limit to try. */
function settle(search: Search, { mostRefused, confidence }: Aim): void {
  const { stats, trial, refusedInTrial, tally } = search;
  if (trial === undefined) return;
  tally.end();
  const isTooLow =
    tally.kept < daysToKeep(tally.days, confidence) || refusedInTrial > stats.requests * mostRefused;
  const most = largestLimitOf(stats.row);
  if (isTooLow && trial < most) {
    search.tooLow = trial;
    // The counter keeps a few points for longer than the window, so even the fullest window may not be enough.
    if (trial >= search.enough) search.enough = Math.min(most, Math.ceil(trial * 1.05) + 1);
  } else {
    search.enough = trial;
    search.refused = refusedInTrial;
    search.isTooLow = isTooLow;
    // No valid limit is higher, so the search ends.
    if (isTooLow) search.tooLow = trial - 1;
  }
  search.refusedInTrial = 0;
  search.trial = nextTrial(search);
  if (search.trial !== undefined) search.tally = new DayTally(search.logDays, mostRefused);
}

function nextTrial({ tooLow, enough, refused }: Search): number | undefined {
  if (enough - tooLow > 1) return Math.floor((tooLow + enough) / 2);
  return refused === undefined ? enough : undefined;
}

function refusedTogether(
  demand: Demand,
  limits: readonly { readonly stats: BucketStats; readonly limit: number }[],
  { isGiven }: { isGiven(stats: BucketStats): boolean },
): number {
  let nowUs = 0;
  let refused = 0;
  const charger = new Charger(() => nowUs);
  const charges = limits.map(({ stats, limit: found }, number) => {
    const limit = isGiven(stats) ? found : stats.limit;
    return limit === undefined || stats.shadowLimit !== undefined
      ? undefined
      : bucketOf(stats, number, limit);
  });
  demand.spool.forEach(({ atUs, cost, reserved, buckets: numbers }) => {
    nowUs = atUs;
    const buckets = numbers.flatMap((number) => charges[number] ?? []);
    if (charger.charge(buckets, cost, reserved).outcome === 'denied') refused += 1;
  });
  return refused;
}
