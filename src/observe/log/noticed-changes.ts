import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { type Static, Type } from 'typebox';
import { plainLine } from '../../domain/printable.ts';
import { shownTime } from '../../domain/shown.ts';
import { amount, plainText, timeMs } from '../../facts/message-bounds.ts';

/** Changes of what is in force that operators see in the log, as marks in charts, and in a list. */
const NAMES = [
  'limits.changed',
  'operations.changed',
  'identities.changed',
  'live-limit.ended',
  'live-limit.raised',
  'revocation.made',
  'revocation.undone',
  'revocation.ended',
  'block.made',
  'block.undone',
  'block.ended',
  'notifications.ended',
] as const;

/** Changes that a replica remembers, and publishes. */
export const MOST_CHANGES = 30;

const MAX_TEXT_CHARACTERS = 300;
const MAX_SUBJECT_CHARACTERS = 2_000;

/** Differences that a text names. */
const MOST_NAMED = 3;

/** One change, as a replica publishes it. */
export const noticedChange = Type.Object({
  /** Unix time by the clock of Redis. */
  atMs: timeMs,
  name: plainText(50),
  text: plainText(MAX_TEXT_CHARACTERS),
  /** How many single differences it has. */
  count: amount,
});

export type NoticedChange = Readonly<Static<typeof noticedChange>>;

/** One difference of a change. */
export interface Difference {
  readonly change: 'added' | 'removed' | 'changed';
  /** The Account, Organization, address or principal; missing for a default. */
  readonly id?: string;
  readonly bucket?: string;
  readonly operation?: string;
  /** What it is, where it has neither a bucket nor an operation: `principal`, `token` or `account`. */
  readonly what?: string;
  readonly from?: object;
  readonly to?: object;
}

/** The members of the line of a change. */
interface Members {
  readonly difference?: readonly Difference[];
  readonly omitted?: number;
  readonly why?: string | null;
  readonly by?: string | null;
  /** What the change is about, where it has no difference. */
  readonly about?: string;
  readonly id?: string;
  readonly replica?: string | undefined;
}

/** A change, for those who keep it. */
export interface KeptChange {
  /** Unix time by the clock of Redis at which it happened. */
  readonly atMs: number;
  readonly kind: string;
  /** What it is about; null for several things. */
  readonly subject: string | null;
  readonly text: string;
  readonly by: string | null;
  readonly why: string | null;
  /** The host name of the replica that it was made at; null where none is known. */
  readonly replica: string | null;
}

/** Writes lines, and remembers the lines that report changes. */
export class Changes {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #startedMs = performance.now();
  #latest: readonly NoticedChange[] = [];
  /** Called with each change since this process started; `isExact` where every replica gives it the same time. */
  onNoticed: (change: KeptChange, isExact: boolean) => void = () => {};

  /** @param nowMs Unix time by the clock of Redis */
  constructor(log: Logger, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /**
   * Writes a line as a logger does, unless it happened before this process started: other replicas have written it.
   *
   * @param atMs when it happened, which every replica knows alike; undefined if each notices it at its own time
   */
  info(members: object, name: string, atMs?: number): void {
    if (!this.#isEarlier(atMs)) this.#log.info(members, name);
    this.#notice(members, name, atMs);
  }

  /** Writes a line for what an operator has to know, whenever it happened. */
  error(members: object, name: string, atMs?: number): void {
    this.#log.error(members, name);
    this.#notice(members, name, atMs);
  }

  #notice(members: Members, name: string, exactMs: number | undefined): void {
    if (!NAMES.some((one) => one === name)) return;
    const atMs = exactMs ?? this.#nowMs();
    const change = { atMs, name, text: textOf(members), count: countOf(members) };
    this.#latest = [change, ...this.#latest].sort((a, b) => b.atMs - a.atMs).slice(0, MOST_CHANGES);
    if (this.#isEarlier(exactMs)) return;
    const { by = null, why = null, replica = null } = members;
    const text = textOf({ ...members, by: null, why: null });
    this.onNoticed(
      { atMs, kind: name, subject: subjectOf(members), text, by, why, replica },
      exactMs !== undefined,
    );
  }

  #isEarlier(exactMs = Number.POSITIVE_INFINITY): boolean {
    return exactMs < this.#nowMs() - (performance.now() - this.#startedMs);
  }

  /** Newest first. */
  get latest(): readonly NoticedChange[] {
    return this.#latest;
  }
}

function subjectOf({ difference = [], id }: Members): string | null {
  const [only, ...others] = difference;
  const subject = id ?? (others.length === 0 ? (only?.id ?? only?.operation) : undefined);
  return subject === undefined ? null : plainLine(subject, MAX_SUBJECT_CHARACTERS);
}

function countOf({ difference = [], omitted = 0 }: Members): number {
  return Math.max(1, difference.length + omitted);
}

function textOf(members: Members): string {
  const { difference = [], why, by, about } = members;
  const named = difference.slice(0, MOST_NAMED).map(differenceText);
  const more = countOf(members) - named.length;
  const parts = [...(about === undefined ? [] : [about]), ...named];
  if (difference.length > 0 && more > 0) parts.push(`${more} more`);
  if (parts.length === 0) parts.push('nothing that counts differs');
  const reason = why ? `: ${why}${by ? ` (${by})` : ''}` : '';
  // Other replicas would not read a pulse, nor anybody the list of changes, with a character that these do not allow.
  return plainLine(`${parts.join(', ')}${reason}`, MAX_TEXT_CHARACTERS);
}

function differenceText({ change, id, bucket, operation, what, from, to }: Difference): string {
  const thing = operation ?? (bucket !== undefined && id !== undefined ? `${bucket} of` : bucket) ?? what;
  const name = [thing, id].filter((part) => part !== undefined).join(' ');
  const isSame = (member: string) => isDeepStrictEqual(memberOf(from, member), memberOf(to, member));
  const values = [from, to].map((one) => valueText(one, isSame)).filter((text) => text !== '');
  if (change !== 'changed' && values.length < 2)
    return `${name} ${change}${values.map((one) => ` (${one})`)}`;
  return `${name} ${values.join(' → ')}`;
}

function memberOf(value: object | undefined, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | undefined)?.[name];
}

/** Such as `500`, `10 points` or `organization org_1`. */
function valueText(value: object | undefined, isSame: (member: string) => boolean): string {
  return Object.entries(value ?? {})
    .filter(([name]) => !isSame(name))
    .map(([name, one]) => {
      if (name === 'limit') return String(one);
      if (name === 'until') return `until ${shownTime(String(one))} UTC`;
      if (name === 'cost') return one === 1 ? '1 point' : `${one} points`;
      return `${name} ${Array.isArray(one) ? one.join(' ') : one}`;
    })
    .join(' ');
}
