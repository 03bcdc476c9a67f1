import type { BucketStats } from '../measure/bucket-stats.ts';
import type { Bins } from '../measure/series.ts';
import type { Replay } from '../replay.ts';
import type { BucketResult, ReplayResult } from '../result.ts';

/** Buckets in the report's table; most affected first. */
const MOST_BUCKETS = 2_000;

/** Buckets with charts, which add about 3 kB each to the file. */
const MOST_CHARTS = 200;

/** The data of a report, which its scripts read as JSON. */
export interface ReportData {
  readonly result: Omit<ReplayResult, 'buckets'>;
  /** The source of the limits, such as a file name. */
  readonly limitsName: string;
  readonly logNames: readonly string[];
  readonly traffic: Bins<string>;
  readonly buckets: readonly ReportBucket[];
  /** Buckets of the replay that `buckets` leaves out. */
  readonly leftOut: number;
}

export interface ReportBucket extends BucketResult {
  readonly charts?: {
    readonly bins: Bins<string>;
    /** Points of a window with the number of such windows, ascending. */
    readonly windows: readonly (readonly [points: number, count: number])[];
  };
}

export interface ReportNames {
  readonly limitsName: string;
  readonly logNames: readonly string[];
}

export function reportData(result: ReplayResult, replay: Replay, names: ReportNames): ReportData {
  const { buckets, ...rest } = result;
  const statsByKey = new Map(replay.buckets.map((stats) => [keyOf(stats.name, stats.id), stats]));
  return {
    result: rest,
    ...names,
    traffic: replay.series.bins(),
    buckets: buckets.slice(0, MOST_BUCKETS).map((bucket, index) => {
      const stats = index < MOST_CHARTS ? statsByKey.get(keyOf(bucket.bucket, bucket.id)) : undefined;
      return { ...bucket, ...chartsOf(stats) };
    }),
    leftOut: Math.max(0, buckets.length - MOST_BUCKETS),
  };
}

function keyOf(name: string, id: string): string {
  return `${name}\n${id}`;
}

function chartsOf(stats: BucketStats | undefined): Pick<ReportBucket, 'charts'> {
  if (stats?.series === undefined) return {};
  return { charts: { bins: stats.series.bins(), windows: stats.windows.entries() } };
}
