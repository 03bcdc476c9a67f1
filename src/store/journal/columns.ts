/** Sums as the arrays of one statement. */
import { createHash } from 'node:crypto';
import type { RecordedLimit, RecordedSum } from '../store.ts';

const SECONDS_PER_MINUTE = 60;
/** Parts of a window whose points are put back together, as of the end of the last minute with points: as exact as the counter. */
const PARTS_PER_WINDOW = 100;
/** PostgreSQL refuses longer values in an index. */
const LONGEST_BYTES = 256;

/**
 * The arrays of WRITE in statements.ts: first of the groups, then of the sums. They are written as texts: if pg gets arrays, it looks at
 * each value, which takes five times as long.
 *
 * @param sums the sums of one minute and operation follow each other, as `PendingSums.take` returns them
 */
export function columnsOf(sums: readonly RecordedSum[]): readonly string[] {
  const groups = new Groups();
  const numbers = sums.map((sum) => groups.numberOf(sum));
  return [
    ...groups.columns,
    numbers,
    sums.map(({ owner }) => quotedText(owner)),
    // It is short: the parts of keys are.
    sums.map(({ key }) => quoted(key)),
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
  /** The numbers of this minute's and operation's groups. */
  #numbers = new Map<RecordedLimit, number>();
  #count = 0;

  /** The number of a sum's group, from 1. */
  numberOf({ record, operation, minute }: RecordedSum): number {
    if (minute !== this.#minute || operation !== this.#operation) {
      [this.#minute, this.#operation, this.#numbers] = [minute, operation, new Map()];
    }
    return this.#numbers.get(record) ?? this.#begin(record);
  }

  #begin(limit: RecordedLimit): number {
    const { start, until, windowSeconds } = countOf(limit, this.#minute);
    const texts = [limit.scope, limit.name, this.#operation].map(quotedText);
    const values = [...texts, this.#minute, start, until, windowSeconds ?? 'null'];
    for (const [index, value] of values.entries()) this.columns[index]?.push(value);
    this.#count += 1;
    this.#numbers.set(limit, this.#count);
    return this.#count;
  }
}

function quotedText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : quoted(storedText(text));
}

function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}

/** The row of the present counts to which a sum is added: of a period, or of a part of a window. All times are Unix times in seconds. */
function countOf({ windowSeconds, calendar }: RecordedLimit, minute: number) {
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
