import { printable } from '../domain/printable.ts';
import { counted, shownCount, shownShare, shownTime } from '../domain/shown.ts';
import type { BucketResult, ReplayResult } from './run-replay.ts';

/** A replay's result for a terminal. At most `most` buckets are listed. */
export function replayLines(result: ReplayResult, most: number): readonly string[] {
  const { from, to, requests, refused, shareRefused } = result;
  if (from === null || to === null)
    return ['No charged request was read.', ...inputLines(result), ...notesOf(result)];
  const change = (count: number, share: number) => `${shownCount(count)} (${shownShare(share)})`;
  return [
    `${counted(requests, 'request')} from ${shownTime(from)} to ${shownTime(to)} UTC`,
    '',
    `  refused before   ${change(refused.before, shareRefused.before)}`,
    `  refused after    ${change(refused.after, shareRefused.after)}`,
    `  newly refused    ${shownCount(result.changed.refused)}`,
    `  newly admitted   ${shownCount(result.changed.admitted)}`,
    '',
    ...tableLines(result.buckets.slice(0, most)),
    '',
    ...remainderLines(result.buckets, most),
    '',
    ...inputLines(result),
    '',
    ...notesOf(result),
  ];
}

const COLUMNS = [
  'bucket',
  'id',
  'limit',
  'requests',
  'before',
  'share',
  'after',
  'share',
  'fullest',
  'p50',
  'p99',
  'p99.9',
  'worst hour',
] as const;

/** Columns of text. The others are aligned to the right. */
const WORDS = new Set<string>(['bucket', 'id', 'worst hour']);

function tableLines(buckets: readonly BucketResult[]): readonly string[] {
  const rows = [[...COLUMNS] as string[], ...buckets.map(cellsOf)];
  const widths = COLUMNS.map((_, column) =>
    rows.reduce((most, row) => Math.max(most, (row[column] ?? '').length), 0),
  );
  const line = (row: readonly string[]) =>
    COLUMNS.map((name, column) => {
      const cell = row[column] ?? '';
      const width = widths[column] ?? 0;
      return WORDS.has(name) ? cell.padEnd(width) : cell.padStart(width);
    })
      .join('  ')
      .trimEnd();
  return rows.map(line);
}

function cellsOf(bucket: BucketResult): string[] {
  const { limit, shadow, windows, worstHour } = bucket;
  return [
    bucket.bucket,
    printable(bucket.id),
    limit === null ? 'none' : shownCount(limit),
    shownCount(bucket.requests),
    shownCount(bucket.refusedBefore),
    shownShare(bucket.shareRefused.before),
    shownCount(bucket.refusedAfter),
    shownShare(bucket.shareRefused.after),
    shownCount(bucket.fullestWindow),
    shownCount(windows.p50),
    shownCount(windows.p99),
    shownCount(windows['p99.9']),
    `${worstHour === null ? '' : hourText(worstHour)}${shadow === undefined ? '' : `  shadow ${shownCount(shadow.limit)}: would refuse ${shownCount(shadow.refused)}`}`,
  ];
}

function hourText({ from, refused, points }: NonNullable<BucketResult['worstHour']>): string {
  const what = refused > 0 ? `${shownCount(refused)} refused` : counted(points, 'point');
  return `${shownTime(from).slice(0, 16)} ${what}`;
}

function remainderLines(buckets: readonly BucketResult[], most: number): readonly string[] {
  const rest = buckets.length - most;
  return rest > 0
    ? [`and ${counted(rest, 'bucket')} less affected: --rows, --json and --report show more`]
    : [];
}

function inputLines({
  lines,
  uncharged,
  otherLines,
  unreadable,
  unreadableLines,
}: ReplayResult): readonly string[] {
  const summary = `${counted(lines, 'line')} read: ${shownCount(uncharged)} uncharged, ${shownCount(otherLines)} not of requests, ${shownCount(unreadable)} unreadable.`;
  const named = unreadableLines.map(({ file, line, problem }) => `  ${file}:${line} ${problem}`);
  const rest = unreadable - unreadableLines.length;
  return [summary, ...named, ...(rest > 0 ? [`  and ${shownCount(rest)} more`] : [])];
}

function notesOf({ notes }: ReplayResult): readonly string[] {
  return notes.map((note) => `Note: ${note}`);
}
