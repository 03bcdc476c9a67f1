/** Sums as the arrays of one statement. */
import { createHash } from 'node:crypto';
import type { BucketRecord } from '../store.ts';
import type { Sum } from './sums.ts';

const SECONDS_PER_MINUTE = 60;
/** Parts of a window whose points are put back together, as of the end of the last minute with points: as exact as the counter. */
const PARTS_PER_WINDOW = 100;
/** PostgreSQL refuses longer values in an index. */
const LONGEST_BYTES = 256;
/** Groups that a bucket is compared with. */
const MOST_GROUPS = 64;

/**
 * The arrays of WRITE in statements.ts: first of the groups, then of the sums. They are written as texts: if pg gets arrays, it looks at
 * each value, which takes five times as long.
 *
 * @param sums the sums of one minute and operation follow each other, as `PendingSums.take` returns them
 */
export function columnsOf(sums: readonly Sum[]): readonly string[] {
  const groups = new Groups();
  const numbers = sums.map((sum) => groups.numberOf(sum));
  return [
    ...groups.columns,
    numbers,
    sums.map(({ bucket }) => quotedText(bucket.owner)),
    // It is short: the parts of keys are.
    sums.map(({ bucket }) => quoted(bucket.key)),
    sums.map(({ points }) => points),
    sums.map(({ requests }) => requests),
    sums.map(({ refused }) => refused),
  ].map((values) => `{${values.join()}}`);
}

/** What sums of one limit, operation and minute have in common. Few groups have most of the sums. */
class Groups {
  readonly columns: readonly (string | number)[][] = Array.from({ length: 7 }, () => []);
  #minute = 0;
  #operation = '';
  /** The groups of this minute and operation: a bucket and the number of each. */
  #latest: (readonly [BucketRecord, number])[] = [];
  #count = 0;

  /** The number of a sum's group, from 1. */
  numberOf({ bucket, operation, minute }: Sum): number {
    if (minute !== this.#minute || operation !== this.#operation) {
      [this.#minute, this.#operation, this.#latest] = [minute, operation, []];
    }
    for (const [other, number] of this.#latest) if (isAlike(bucket, other)) return number;
    return this.#begin(bucket);
  }

  #begin(bucket: BucketRecord): number {
    const { start, until, windowSeconds } = countOf(bucket, this.#minute);
    const texts = [bucket.scope, bucket.name, this.#operation].map(quotedText);
    const values = [...texts, this.#minute, start, until, windowSeconds ?? 'null'];
    for (const [index, value] of values.entries()) this.columns[index]?.push(value);
    this.#count += 1;
    // Owners with periods of their own are few, and a group that begins again is no error.
    if (this.#latest.length < MOST_GROUPS) this.#latest.push([bucket, this.#count]);
    return this.#count;
  }
}

function isAlike(bucket: BucketRecord, other: BucketRecord): boolean {
  return (
    bucket.name === other.name &&
    bucket.calendar === other.calendar &&
    bucket.windowSeconds === other.windowSeconds &&
    bucket.scope === other.scope
  );
}

function quotedText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : quoted(storedText(text));
}

function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}

/** The row of the present counts to which a sum is added: of a period, or of a part of a window. All times are Unix times in seconds. */
function countOf({ windowSeconds, calendar }: BucketRecord, minute: number) {
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
