/** What changed in the last seven days, at all replicas, whatever restarts. */
import { setImmediate } from 'node:timers/promises';
import { withinMs } from '../../domain/awaitable.ts';
import { pace } from '../../domain/pace.ts';
import { parsed } from '../../facts/message-bounds.ts';
import type { MessageRecord, SharedStore } from '../../store/shared-store.ts';
import type { Losses } from '../fleet/snapshot.ts';
import { asChange, ofKind, onceEach, type RecordedChange } from './change.ts';
import { isLoss, unseenLosses } from './losses.ts';

/** The record of Redis that has the changes. */
const TOPIC = 'changes';

export const KEPT_MS = 7 * 86_400_000;

/**
 * The kind of the entry that a replica writes again and again. It is no change, and nobody lists it: a replica that has run for longer than
 * changes are kept would be unknown without it.
 */
export const RUNNING_KIND = 'replica.running';

/** Changes that are kept. Beyond, the oldest are dropped. */
const MOST = 10_000;

/** Changes that wait for a Redis that is away. Beyond, the oldest are lost. */
const MOST_WAITING = 1_000;

/** Written at a time. */
const PER_WRITE = 200;

/** Between two looks for changes above the cap, in changes written. */
const TRIM_EVERY = 500;

/** Texts parsed before yielding to requests. */
const SLICE = 500;

/** How long a reading or a write waits for Redis. */
const LONGEST_WAIT_MS = 1_000;

export class ChangeHistory {
  readonly #shared: SharedStore | undefined;
  readonly #nowMs: () => number;
  /** Without a shared store, everything; else what is not written yet. */
  #own: RecordedChange[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<boolean> | undefined;
  #isClosed = false;
  #untilTrim = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #losses: Promise<Losses> | undefined;

  /**
   * @param shared undefined where this process is the only replica: changes are kept in its memory
   * @param nowMs Unix time by the clock of Redis
   */
  constructor(shared: SharedStore | undefined, nowMs: () => number) {
    this.#shared = shared;
    this.#nowMs = nowMs;
  }

  add(change: RecordedChange): void {
    const most = this.#shared === undefined ? MOST : MOST_WAITING;
    this.#own.push(change);
    if (this.#own.length > most) this.#own.shift();
    if (this.#shared !== undefined) this.#timer ??= setTimeout(() => void this.#write(), 0).unref();
  }

  /**
   * Everything that is kept, as of now, newest first, and apart from it the entries of replicas that run. `isWhole` is false while Redis
   * cannot be read: then only what this replica has not written yet is known.
   */
  async read() {
    const recorded = this.#shared === undefined ? [] : await this.#recorded();
    const fromMs = this.#nowMs() - KEPT_MS;
    const all = [...(recorded ?? []), ...this.#own];
    const changes = all.filter(({ kind, atMs }) => kind !== RUNNING_KIND && atMs >= fromMs);
    const running = ofKind(all, RUNNING_KIND);
    const shown = (await onceEach(changes)).slice(0, MOST);
    return { changes: shown, running, isWhole: recorded !== undefined };
  }

  /**
   * What was lost and nobody has seen, as read at most a few seconds ago: consoles ask once a second. While Redis cannot be read, it is
   * what was read last.
   */
  losses(): Promise<Losses> {
    const nowMs = performance.now();
    const known = this.#losses;
    if (known !== undefined && nowMs - this.#lookedMs < pace.lossesReadingMs) return known;
    this.#lookedMs = nowMs;
    const read = this.read().then(async ({ changes, isWhole }) =>
      isWhole || known === undefined ? unseenLosses(changes) : known,
    );
    this.#losses = known === undefined ? read : known;
    void read.then((losses) => {
      this.#losses = Promise.resolve(losses);
    });
    return this.#losses;
  }

  /** Adds a change and resolves once it is written, or after a second. Returns whether it is. */
  async addNow(change: RecordedChange): Promise<boolean> {
    this.add(change);
    await this.#flush();
    this.#losses = undefined;
    return this.#shared === undefined || !this.#own.includes(change);
  }

  /** Writes what waits, for a second at most. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#flush();
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const all = async () => {
      await this.#writing;
      while (this.#shared !== undefined && this.#own.length > 0) {
        const isWritten = await this.#write();
        if (!isWritten) return;
      }
    };
    await withinMs(all(), LONGEST_WAIT_MS, false);
  }

  #recorded(): Promise<readonly RecordedChange[] | undefined> | undefined {
    return this.#shared
      ?.withRecord(TOPIC, async (record) => readChanges(await record.read()), LONGEST_WAIT_MS)
      .catch(() => undefined);
  }

  /** @returns whether Redis has taken some of what waits: the others follow at once, because many changes may be made in a second */
  #write(): Promise<boolean> {
    this.#writing ??= this.#writeNext().then((isWritten) => {
      this.#writing = undefined;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#own.length > 0 && !this.#isClosed)
        this.#timer = setTimeout(() => void this.#write(), isWritten ? 0 : pace.triesMs).unref();
      return isWritten;
    });
    return this.#writing;
  }

  async #writeNext(): Promise<boolean> {
    const next = this.#own.slice(0, PER_WRITE);
    const write = async (record: MessageRecord) => {
      // What does not match the schema is dropped: nobody could read it.
      const readable = next.flatMap((one) => asChange(one) ?? []);
      this.#untilTrim -= readable.length;
      const isTrimmed = this.#untilTrim < 0;
      if (isTrimmed) this.#untilTrim = TRIM_EVERY;
      const writtenMs = this.#nowMs();
      const messages = readable.map((one) => ({
        text: JSON.stringify(isLoss(one.kind) ? { ...one, writtenMs } : one),
        // The same text again is kept for longer, and takes no more room.
        untilMs: (one.kind === RUNNING_KIND ? writtenMs : one.atMs) + KEPT_MS,
      }));
      await record.publish(messages, isTrimmed ? await aboveCap(record) : []);
      const written = new Set(next);
      this.#own = this.#own.filter((one) => !written.has(one));
      return true;
    };
    // The store's own metrics and log report a Redis that does not answer.
    const writing = this.#shared?.withRecord(TOPIC, write, LONGEST_WAIT_MS).catch(() => false);
    return (await writing) ?? false;
  }
}

/** The oldest texts above the cap: a record is in the order of its ends. */
async function aboveCap(record: MessageRecord): Promise<readonly string[]> {
  const texts = await record.read();
  return texts.slice(0, Math.max(0, texts.length - MOST + TRIM_EVERY));
}

async function readChanges(texts: readonly string[]): Promise<readonly RecordedChange[]> {
  const changes: RecordedChange[] = [];
  for (let from = 0; from < texts.length; from += SLICE) {
    changes.push(...texts.slice(from, from + SLICE).flatMap((text) => asChange(parsed(text)) ?? []));
    await setImmediate();
  }
  return changes;
}
