/** Sums as the arrays of one statement. */
import { createHash } from 'node:crypto';
import type { Sum } from './sums.ts';

const SECONDS_PER_MINUTE = 60;
/** Parts of a window whose points are put back together, as of the end of the last minute with points: as exact as the counter. */
const PARTS_PER_WINDOW = 100;
/** PostgreSQL refuses longer values in an index. */
const LONGEST_BYTES = 256;

/**
 * The arrays of WRITE in statements.ts. They are written as texts: if pg gets arrays, it looks at each value, which takes five times as
 * long.
 */
export function columnsOf(sums: readonly Sum[]): readonly string[] {
  const counts = sums.map(countOf);
  const texts = (read: (sum: Sum) => string) => arrayOf(sums.map((sum) => quotedText(read(sum))));
  const numbers = (read: (sum: Sum) => number) => arrayOf(sums.map(read));
  return [
    texts(({ bucket }) => bucket.scope),
    texts(({ bucket }) => bucket.owner),
    numbers(({ minute }) => minute),
    texts(({ bucket }) => bucket.name),
    texts(({ operation }) => operation),
    numbers(({ points }) => points),
    numbers(({ requests }) => requests),
    numbers(({ refused }) => refused),
    // It is short: the parts of keys are.
    arrayOf(sums.map(({ bucket }) => quoted(bucket.key))),
    arrayOf(counts.map(({ start }) => start)),
    arrayOf(counts.map(({ until }) => until)),
    arrayOf(counts.map(({ windowSeconds }) => windowSeconds ?? 'null')),
  ];
}

function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.join()}}`;
}

function quotedText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : quoted(storedText(text));
}

function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}

/** The row of the present counts to which a sum is added: of a period, or of a part of a window. All times are Unix times in seconds. */
function countOf({ bucket: { windowSeconds, calendar }, minute }: Sum) {
  const atSeconds = minute * SECONDS_PER_MINUTE;
  if (calendar === undefined) {
    const minutes = Math.max(1, Math.floor(windowSeconds / (PARTS_PER_WINDOW * SECONDS_PER_MINUTE)));
    const partSeconds = minutes * SECONDS_PER_MINUTE;
    const start = atSeconds - (atSeconds % partSeconds);
    return { start, until: start + partSeconds + windowSeconds, windowSeconds };
  }
  const { startMs, endMs } = calendar.at(atSeconds * 1_000);
  return { start: startMs / 1_000, until: endMs / 1_000, windowSeconds: undefined };
}

/**
 * A text as the journal has it: a long one is replaced by its digest, as in the keys of the store. PostgreSQL stores neither a NUL nor half
 * a surrogate pair.
 */
export function storedText(text: string): string {
  if (PLAIN.test(text)) return text;
  const bytes = Buffer.from(text.replaceAll('\0', '\uFFFD'));
  if (bytes.length <= LONGEST_BYTES) return bytes.toString();
  return `#${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Nearly all texts are. */
const PLAIN = /^[\w.:-]{0,256}$/;
