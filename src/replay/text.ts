import type { BucketResult, ReplayResult } from './result.ts';
import { counted, shownCount, shownShare, shownTime } from './shown.ts';

/** A replay's result for a terminal. At most `most` buckets are listed. */
export function replayText(result: ReplayResult, most: number): string {
  const { from, to, requests, refused, shareRefused } = result;
  if (from === null || to === null)
    return `No charged request was read.\n${inputText(result)}${notesText(result)}`;
  const change = (count: number, share: number) => `${shownCount(count)} (${shownShare(share)})`;
  return [
    `${counted(requests, 'request')} from ${shownTime(from)} to ${shownTime(to)} UTC`,
    '',
    `  refused before   ${change(refused.before, shareRefused.before)}`,
    `  refused after    ${change(refused.after, shareRefused.after)}`,
    `  newly refused    ${shownCount(result.changed.refused)}`,
    `  newly admitted   ${shownCount(result.changed.admitted)}`,
    '',
    tableText(result.buckets.slice(0, most)),
    remainderText(result.buckets, most),
    inputText(result),
    notesText(result),
  ].join('\n');
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

function tableText(buckets: readonly BucketResult[]): string {
  const rows = [[...COLUMNS] as string[], ...buckets.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]) =>
    COLUMNS.map((name, column) => {
      const cell = row[column] ?? '';
      const width = widths[column] ?? 0;
      return WORDS.has(name) ? cell.padEnd(width) : cell.padStart(width);
    })
      .join('  ')
      .trimEnd();
  return `${rows.map(line).join('\n')}\n`;
}

function cellsOf(bucket: BucketResult): string[] {
  const { limit, shadow, windows, worstHour } = bucket;
  return [
    bucket.bucket,
    bucket.id,
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

function remainderText(buckets: readonly BucketResult[], most: number): string {
  const rest = buckets.length - most;
  return rest > 0
    ? `and ${counted(rest, 'bucket')} less affected: --rows, --json and --report show more\n`
    : '';
}

function inputText({ lines, uncharged, otherLines, unreadable, unreadableLines }: ReplayResult): string {
  const summary = `${counted(lines, 'line')} read: ${shownCount(uncharged)} uncharged, ${shownCount(otherLines)} not of requests, ${shownCount(unreadable)} unreadable.\n`;
  const named = unreadableLines.map(({ file, line, problem }) => `  ${file}:${line} ${problem}\n`);
  const rest = unreadable - unreadableLines.length;
  return summary + named.join('') + (rest > 0 ? `  and ${shownCount(rest)} more\n` : '');
}

function notesText({ notes }: ReplayResult): string {
  return notes.map((note) => `Note: ${note}\n`).join('');
}
