import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { BucketStats } from '../../replay/measure/bucket-stats.ts';
import type { Replay } from '../../replay/replay.ts';
import type { ReplayResult } from '../../replay/run-replay.ts';

/** The report's script, bundled, whether this file runs compiled or as it is. */
const SCRIPT = '../../../dist/console/browser/report/report-page.js';

/**
 * A replay's report as one HTML page with its styles, scripts and data. Its content security policy does not let it load
 * anything.
 */
export function reportHtml(data: ReportData): string {
  const style = asset('../base.css') + asset('page.css');
  const script = asset(SCRIPT);
  const parts: Readonly<Record<string, string>> = {
    POLICY: `default-src 'none'; style-src '${digest(style)}'; script-src '${digest(script)}'; base-uri 'none'; form-action 'none'`,
    STYLE: style,
    SCRIPT: script,
    // A `<` could end the element that contains the data.
    DATA: JSON.stringify(data).replaceAll('<', '\\u003c'),
  };
  return asset('page.html').replace(/\{\{(\w+)\}\}/g, (_, name: string) => parts[name] ?? '');
}

function asset(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function digest(text: string): string {
  return `sha256-${hash('sha256', text, 'base64')}`;
}

/** Buckets in the report's table; most affected first. */
const MOST_BUCKETS = 2_000;

/** Buckets with charts, which add about 3 kB each to the file. */
const MOST_CHARTS = 200;

/** The data of a report, which its scripts read as JSON. */
export type ReportData = ReturnType<typeof reportData>;

export type ReportBucket = ReportData['buckets'][number];

/** @param limitsName the source of the limits, such as a file name */
export function reportData(
  result: ReplayResult,
  replay: Replay,
  limitsName: string,
  logNames: readonly string[],
) {
  const { buckets, ...rest } = result;
  const statsByKey = new Map(replay.buckets.map((stats) => [keyOf(stats.name, stats.id), stats]));
  return {
    result: rest,
    limitsName,
    logNames,
    traffic: replay.series.bins(),
    buckets: buckets.slice(0, MOST_BUCKETS).map((bucket, index) => {
      const stats = index < MOST_CHARTS ? statsByKey.get(keyOf(bucket.bucket, bucket.id)) : undefined;
      return { ...bucket, ...chartsOf(stats) };
    }),
    /** Buckets of the replay that `buckets` leaves out. */
    leftOut: Math.max(0, buckets.length - MOST_BUCKETS),
  };
}

function keyOf(name: string, id: string): string {
  return `${name}\n${id}`;
}

/** Values over time, and the points of a window with the number of such windows, ascending. */
function chartsOf(stats: BucketStats | undefined) {
  if (stats?.series === undefined) return { charts: undefined };
  return { charts: { bins: stats.series.bins(), windows: stats.windows.entries() } };
}
