import type { Logger } from 'pino';
import { type Static, Type } from 'typebox';
import { plainLine } from '../../domain/printable.ts';
import { amount, plainText, timeMs } from '../../facts/message-bounds.ts';
import { type Difference, differenceText, subjectIn } from './difference-text.ts';

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

/** The members of the line of a change. */
interface Members {
  readonly difference?: readonly Difference[];
  readonly omitted?: number;
  /** The window of the contract's limits, if it changed. */
  readonly windowSeconds?: { readonly from: number; readonly to: number };
  readonly why?: string | null;
  readonly by?: string | null;
  /** What the change is about, where it has no difference. */
  readonly about?: string;
  readonly id?: string;
  /** The principal or the token of a revocation. */
  readonly target?: string;
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
    const text = textOf({ ...withoutSubject(members), by: null, why: null });
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

function subjectOf({ difference = [], windowSeconds, id, target }: Members): string | null {
  const [only, ...others] = difference;
  const isOne = only !== undefined && others.length === 0 && windowSeconds === undefined;
  const subject = id ?? target ?? (isOne ? subjectIn(only) : undefined);
  return subject === undefined ? null : plainLine(subject, MAX_SUBJECT_CHARACTERS);
}

/** What is kept has a subject, so the text of a limit does not name its owner again. */
function withoutSubject(members: Members): Members {
  const subject = subjectOf(members);
  const difference = members.difference?.map((one) => {
    const { id, ...others } = one;
    return one.bucket !== undefined && id === subject ? others : one;
  });
  return { ...members, ...(difference && { difference }) };
}

function countOf({ difference = [], omitted = 0, windowSeconds }: Members): number {
  return Math.max(1, difference.length + omitted + (windowSeconds === undefined ? 0 : 1));
}

function textOf(members: Members): string {
  const { difference = [], windowSeconds, why, by, about } = members;
  const window = windowSeconds && `windowSeconds ${windowSeconds.from} -> ${windowSeconds.to}`;
  const all = [
    ...(window === undefined ? [] : [window]),
    ...difference.slice(0, MOST_NAMED).map(differenceText),
  ];
  const named = all.slice(0, MOST_NAMED);
  const more = countOf(members) - named.length;
  const parts = [...(about === undefined ? [] : [about]), ...named];
  if (named.length > 0 && more > 0) parts.push(`${more} more`);
  if (parts.length === 0) parts.push('nothing that is compared differs');
  const reason = why ? `: ${why}${by ? ` (${by})` : ''}` : '';
  // Other replicas would not read a pulse, nor anybody the list of changes, with a character that these do not allow.
  return plainLine(`${parts.join(', ')}${reason}`, MAX_TEXT_CHARACTERS);
}
