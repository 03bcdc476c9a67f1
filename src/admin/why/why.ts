/** Why requests were refused, for a day, whichever replica refused them. */
import { setTimeout } from 'node:timers/promises';
import { Type } from 'typebox';
import type { LimitRow } from '../../domain/limits/rows.ts';
import { pace } from '../../domain/pace.ts';
import type { Ignored } from '../../facts/ignored.ts';
import { matching, parsed } from '../../facts/message-bounds.ts';
import type { UsageBatch } from '../../observe/usage/batch.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { Archive, Board } from '../../store/shared-store.ts';
import { answered, readOthers } from '../fleet/boards.ts';
import { fillsOf, type Question, question, type SpentBy } from './fills.ts';
import {
  HOUR_MS,
  hourOf,
  IdIndex,
  KEPT_HOURS,
  LIFE_MS,
  type RefusalIdentity,
  type RefusedId,
} from './id-index.ts';
import { type Fill, type FoundRefusal, fillLine, readLines, refusalLine } from './refusal.ts';
import { type PendingRefusal, RefusalLog } from './refusal-log.ts';

/** Refusals that share a key. */
const PER_KEY = 16;

/** Questions that a replica asks at a time. In a flood of different callers, it does not ask what others had admitted for the rest. */
const MOST_QUESTIONS = 1_000;

/** Questions that a replica has to answer. */
const MOST_ANSWERS = 10_000;

/** Operations and principals that a replica names. All others are one more. */
const MOST_ROWS = 30;

/** How long after a refusal its question is answered once more: for requests that were in progress. */
const LATE_MS = 10_000;

/** How long a question is asked. */
const ASKED_MS = 2_000;

const MOST_FOUND = 10;

export interface WhySources {
  readonly charges: UsageBatch['charges'];
  /** Unix time by the clock of Redis. */
  nowMs(): number;
  rows(): readonly LimitRow[];
  /** Where the files set the limit of a bucket. */
  writtenAt(bucket: PayerBucket): Promise<string | undefined>;
  readonly ignored: Pick<Ignored, 'add'>;
}

/** A request that was refused, and why. */
export type WhyRefused = FoundRefusal & Pick<RefusedId, 'atMs'>;

interface Asked {
  readonly question: Question;
  /** What was written last; undefined before the first answer. */
  written: string | undefined;
  isLate: boolean;
}

export class Why {
  readonly #name: string;
  readonly #sources: WhySources;
  readonly #archive: Archive;
  readonly #board: Board | undefined;
  readonly #index: IdIndex;
  readonly #log: RefusalLog;
  /** Questions of all replicas, by the identity of their refusals. */
  readonly #asked = new Map<string, Asked>();
  readonly #ended = new AbortController();
  #writing: Promise<void> = Promise.resolve();

  /**
   * @param name of this replica
   * @param board undefined where this process is the only replica
   */
  constructor(name: string, sources: WhySources, archive: Archive, board: Board | undefined) {
    this.#name = name;
    this.#sources = sources;
    this.#archive = archive;
    this.#board = board;
    this.#index = new IdIndex(archive);
    this.#log = new RefusalLog(() => sources.nowMs());
    void this.#run();
  }

  /** Notes a finished request if it got a 429. */
  requestFinished(context: RequestContext): void {
    this.#log.requestFinished(context);
  }

  /** The refused requests with this id, the last one first. Undefined while Redis cannot be read. */
  async find(requestId: string): Promise<readonly WhyRefused[] | undefined> {
    await this.#write();
    const reading = this.#index.find(requestId, this.#sources.nowMs()).then(async (ids) => {
      const found = await Promise.all(ids.slice(0, MOST_FOUND).map((one) => this.#read(one)));
      return found.flatMap((one) => one ?? []);
    });
    return answered(reading);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#write();
    await this.#board?.close();
    this.#archive.close();
  }

  async #read(id: RefusedId): Promise<WhyRefused | undefined> {
    const lines = await this.#archive.read(keyOf(id, hourOf(id.atMs)));
    const found = readLines(lines.toString(), id.number);
    return found && { ...found, atMs: id.atMs };
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.#write();
      await setTimeout(pace.publishMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Writes what this replica has refused, and what it knows of the windows that others ask about. One call at a time. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeAll()).catch(() => undefined);
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    const { refusals, ids } = this.#log.take();
    for (const { question: one } of refusals) if (one !== undefined) this.#ask(one);
    await this.#askOthers();
    const lines = new Map<string, string[]>();
    const places = new Map<string, string | undefined>();
    for (const one of refusals) addLine(lines, keyOf(one, hourOf(one.atMs)), await this.#lineOf(one, places));
    for (const [asked, line] of await this.#answers()) {
      addLine(lines, keyOf(asked, hourOf(asked.atMs)), line);
    }
    const failed = await this.#append(lines);
    const isFailed = (one: PendingRefusal) => failed.has(keyOf(one, hourOf(one.atMs)));
    const late = ids.map(async ([hour, entries]) => {
      this.#log.written(entries.length);
      return [hour, await this.#index.add(hour, entries)] as const;
    });
    this.#log.keep({ refusals: refusals.filter(isFailed), ids: await Promise.all(late) });
    this.#index.forgetBefore(this.#sources.nowMs() - KEPT_HOURS * HOUR_MS);
  }

  async #lineOf(
    { limited, refusal, ...id }: PendingRefusal,
    places: Map<string, string | undefined>,
  ): Promise<string> {
    if (limited === undefined) return refusalLine(id, refusal);
    const { source, name, plan, owner } = limited;
    const key = `${source} ${name} ${plan} ${source === 'override' ? owner : ''}`;
    if (!places.has(key)) places.set(key, await this.#sources.writtenAt(limited));
    const writtenAt = places.get(key);
    return refusalLine(id, writtenAt === undefined ? refusal : { ...refusal, writtenAt });
  }

  #ask(one: Question): void {
    const key = identityOf(one);
    if (this.#asked.size < MOST_ANSWERS && !this.#asked.has(key))
      this.#asked.set(key, { question: one, written: undefined, isLate: false });
  }

  /** Shows the other replicas the questions of this one, and takes theirs. */
  async #askOthers(): Promise<void> {
    const board = this.#board;
    if (board === undefined) return;
    const { ignored, nowMs } = this.#sources;
    const own = [...this.#asked.values()]
      .map((asked) => asked.question)
      .filter(({ processTag, toMs }) => processTag === this.#log.processTag && toMs > nowMs() - ASKED_MS)
      .slice(-MOST_QUESTIONS);
    if (own.length > 0) await answered(board.post(JSON.stringify(own)));
    const others = await readOthers(board, this.#name, ignored, (text) => asQuestions(parsed(text)));
    for (const one of [...(others?.values() ?? [])].flat()) {
      if (one.toMs > nowMs() - LATE_MS / 2) this.#ask(one);
    }
  }

  /** The lines of the questions whose answer is new. */
  async #answers(): Promise<readonly (readonly [Question, string])[]> {
    const { charges, rows, nowMs } = this.#sources;
    const now = nowMs();
    const aheadMs = now - performance.now();
    const due = [...this.#asked.values()].filter(
      ({ written, question: { toMs } }) => written === undefined || toMs < now - LATE_MS,
    );
    if (due.length === 0) return [];
    const fills = await fillsOf(
      due.map((asked) => asked.question),
      charges,
      rows(),
      aheadMs,
    );
    const sinceMs = Math.round(charges.sinceMs + aheadMs);
    return due.flatMap((asked) => {
      const { question: one, written } = asked;
      if (written !== undefined) this.#asked.delete(identityOf(one));
      const rowsOfFill = rowsOf(fills.get(one) ?? []);
      const fill: Fill = [this.#name, sinceMs > one.fromMs ? sinceMs : 0, rowsOfFill];
      const line = fillLine(one, fill);
      asked.written = line;
      const isOthers = one.processTag !== this.#log.processTag;
      return line === written || (isOthers && written === undefined && rowsOfFill.length === 0)
        ? []
        : [[one, line] as const];
    });
  }

  /** Returns the keys that could not be written. */
  async #append(lines: ReadonlyMap<string, readonly string[]>): Promise<ReadonlySet<string>> {
    const failed = new Set(lines.keys());
    const appended = [...lines].map(async ([key, texts]) => {
      const bytes = Buffer.from(texts.join(''));
      this.#log.written(bytes.length);
      await this.#archive.append(key, bytes, LIFE_MS).then(
        () => failed.delete(key),
        () => undefined,
      );
    });
    await answered(Promise.all(appended));
    return failed;
  }
}

const asQuestions = matching(Type.Array(question, { maxItems: MOST_QUESTIONS }));

function addLine(lines: Map<string, string[]>, key: string, line: string): void {
  const known = lines.get(key);
  if (known === undefined) lines.set(key, [line]);
  else known.push(line);
}

function keyOf({ processTag, number }: RefusalIdentity, hour: number): string {
  return `${hour}:${processTag.toString(36)}-${Math.floor(number / PER_KEY).toString(36)}`;
}

function identityOf({ processTag, number }: RefusalIdentity): string {
  return `${processTag} ${number}`;
}

function rowsOf(spent: readonly SpentBy[]): Fill[2] {
  const shown = spent.slice(0, MOST_ROWS);
  const others = spent.slice(MOST_ROWS);
  const rows: Fill[2] = shown.map(({ operation, principal, points, requests }) => [
    operation,
    principal,
    points,
    requests,
  ]);
  if (others.length === 0) return rows;
  const sum = (of: 'points' | 'requests') => others.reduce((all, one) => all + one[of], 0);
  return [...rows, ['others', null, sum('points'), sum('requests')]];
}
