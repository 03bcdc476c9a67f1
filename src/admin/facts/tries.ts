/** When and from where each revoked token was last used. The sender has the leaked token. */

import { Type } from 'typebox';
import { pace } from '../../domain/pace.ts';
import { id, matching, parsed, plainText, timeMs } from '../../facts/message-bounds.ts';
import { formatTarget, readTarget, targetKey } from '../../facts/revocation-message.ts';
import type { Revocation, Revoked } from '../../facts/revocations.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { MessageRecord, SharedStore } from '../../store/shared-store.ts';

/** The last request with a token that was refused because it, or its principal, is revoked. */
export interface Try {
  readonly revoked: Revoked;
  /** Unix time by the clock of Redis. */
  readonly atMs: number;
  /** When the revocation ends. */
  readonly untilMs: number;
  /** Of the client. */
  readonly address: string;
}

/** The record of Redis that has the tries of all replicas, one of each revocation. */
export const TRIES = 'tries';

/** Revocations whose last try is kept. Beyond, the earliest tries are dropped. */
const MOST = 1_000;

/** How long a reading waits for Redis. */
const LONGEST_WAIT_MS = 1_000;

const asMessage = matching(
  Type.Object({
    kind: Type.Union([Type.Literal('token'), Type.Literal('principal')]),
    target: id,
    atMs: timeMs,
    untilMs: timeMs,
    address: plainText(100),
  }),
);

/** The key of a revocation among the tries. */
export function triedKey({ revoked }: Revocation): string {
  return targetKey(revoked);
}

/** A try as operators see it. */
export function shownTry(last: Try | undefined) {
  return last === undefined ? null : { at: new Date(last.atMs).toISOString(), from: last.address };
}

/** The tries that a record holds, by what is revoked, latest last. */
export async function readTries(record: MessageRecord): Promise<ReadonlyMap<string, Try>> {
  return latestOf((await record.read()).flatMap((text) => readTry(text) ?? []));
}

/** The tries at all replicas, in bounded memory. This replica writes its own to Redis. */
export class RevocationTries {
  readonly #shared: SharedStore | undefined;
  readonly #nowMs: () => number;
  #known: ReadonlyMap<string, Try> = new Map();
  #own = new Map<string, Try>();
  #timer: NodeJS.Timeout | undefined;
  #reading: { readonly atMs: number; readonly done: Promise<void> } | undefined;
  #isClosed = false;

  /**
   * @param shared undefined where this process is the only replica: then nothing is revoked
   * @param nowMs Unix time by the clock of Redis
   */
  constructor(shared: SharedStore | undefined, nowMs: () => number) {
    this.#shared = shared;
    this.#nowMs = nowMs;
  }

  requestFinished({ revokedToken, clientAddress }: RequestContext): void {
    if (revokedToken === undefined) return;
    const { revoked, untilMs } = revokedToken.by;
    const key = triedKey(revokedToken.by);
    this.#own.delete(key);
    this.#own.set(key, { revoked, atMs: this.#nowMs(), untilMs, address: clientAddress });
    const [oldest] = this.#own.keys();
    if (this.#own.size > MOST && oldest !== undefined) this.#own.delete(oldest);
    this.#timer ??= setTimeout(() => void this.#share(), 0).unref();
  }

  /** The tries at all replicas. While Redis cannot be read: the last that were read, and this replica's own. */
  async latest(): Promise<ReadonlyMap<string, Try>> {
    const nowMs = performance.now();
    if (this.#reading === undefined || nowMs - this.#reading.atMs > pace.triesReadingMs) {
      this.#reading = { atMs: nowMs, done: this.#withRecord((record) => this.#read(record)) };
    }
    await this.#reading.done;
    return latestOf([...this.#known.values(), ...this.#own.values()]);
  }

  /** Writes what is left, for a second at most. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    if (this.#own.size > 0) await this.#share();
  }

  async #read(record: MessageRecord): Promise<void> {
    this.#known = await readTries(record);
  }

  async #share(): Promise<void> {
    const own = new Map(this.#own);
    await this.#withRecord(async (record) => {
      await write(record, [...own.values()]);
      for (const [key, value] of own) if (this.#own.get(key) === value) this.#own.delete(key);
      await this.#read(record);
    });
    if (this.#isClosed) return;
    // What is tried meanwhile, and what Redis did not take, is written with the next.
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#own.size > 0) void this.#share();
    }, pace.triesMs).unref();
  }

  /** The store's own metrics and log report a Redis that does not answer. */
  async #withRecord(use: (record: MessageRecord) => Promise<void>): Promise<void> {
    await this.#shared?.withRecord(TRIES, use, LONGEST_WAIT_MS).catch(() => undefined);
  }
}

/** Writes tries. Replaces the earlier try of each revocation, and drops the oldest above the cap. */
async function write(record: MessageRecord, tries: readonly Try[]): Promise<void> {
  const texts = await record.read();
  const recorded = texts.flatMap((text) => readTry(text) ?? []);
  const kept = new Set([...latestOf([...recorded, ...tries]).values()].slice(-MOST).map(textOf));
  const messages = tries.map((one) => ({ text: textOf(one), untilMs: one.untilMs }));
  await record.publish(
    messages.filter(({ text }) => kept.has(text)),
    texts.filter((text) => readTry(text) !== undefined && !kept.has(text)),
  );
}

/** The latest of each revocation, latest last. */
function latestOf(tries: readonly Try[]): ReadonlyMap<string, Try> {
  const latest = new Map<string, Try>();
  for (const one of tries.toSorted((a, b) => a.atMs - b.atMs)) {
    const key = triedKey(one);
    latest.delete(key);
    latest.set(key, one);
  }
  return latest;
}

function textOf({ revoked, atMs, untilMs, address }: Try): string {
  return JSON.stringify({ kind: revoked.kind, target: formatTarget(revoked), atMs, untilMs, address });
}

/** Undefined for a text that no replica of this version wrote. */
function readTry(text: string): Try | undefined {
  const read = asMessage(parsed(text));
  if (read === undefined) return undefined;
  const { kind, target, ...rest } = read;
  const revoked: Revoked = kind === 'principal' ? { kind, id: target } : readTarget(target);
  return revoked.kind === kind ? { revoked, ...rest } : undefined;
}
