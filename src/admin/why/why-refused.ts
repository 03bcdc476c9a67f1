/** Why requests were refused, for a day, whichever replica refused them. */
import { setTimeout } from 'node:timers/promises';
import { inTurns } from '../../domain/awaitable.ts';
import type { Payer } from '../../domain/caller.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import { pace } from '../../domain/pace.ts';
import type { Ignored } from '../../facts/ignored.ts';
import type { UsageBatch } from '../../observe/usage/batch.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { Archive, Board } from '../../store/shared-store.ts';
import { answered } from '../fleet/boards.ts';
import { Answers } from './answers.ts';
import { HOUR_MS, hourOf, IdIndex, KEPT_HOURS, LIFE_MS, type RefusedId } from './id-index.ts';
import { LimitParts } from './limit-parts.ts';
import { keyOf, Lines } from './lines.ts';
import { FleetQuestions } from './questions.ts';
import { callerLine, callerPart, readCaller, readLines, type WhyRefused } from './refusal.ts';
import { lost, type Pending, type PendingRefusal, RefusalLog } from './refusal-log.ts';

const MOST_FOUND = 10;

/** Lines that are made before yielding to requests: about ten milliseconds of work. */
const PER_TURN = 1_000;

/** Where the requests of an hour are counted that cannot be found by their ids. */
const UNFINDABLE = 'unfindable';

export interface WhySources {
  readonly charges: UsageBatch['charges'];
  /** Unix time by the clock of Redis. */
  nowMs(): number;
  rows(): readonly LimitRow[];
  /** The limits in force: another object after each change of the files. */
  limits(): object;
  /** Where the files set the limit of a bucket. */
  writtenAt(bucket: PayerBucket): Promise<string | undefined>;
  readonly ignored: Pick<Ignored, 'add'>;
  /** Requests were refused that cannot be found by their ids. */
  unfindable(count: number): void;
}

export class Why {
  readonly #sources: WhySources;
  readonly #archive: Archive;
  readonly #board: Board | undefined;
  readonly #index: IdIndex;
  readonly #log: RefusalLog;
  readonly #parts: LimitParts;
  readonly #questions: FleetQuestions;
  readonly #answers: Answers;
  readonly #ended = new AbortController();
  #writing: Promise<void> = Promise.resolve();
  /** Whether Redis did not take what was written last. */
  #isAway = false;

  /**
   * @param name of this replica
   * @param board undefined where this process is the only replica
   */
  constructor(name: string, sources: WhySources, archive: Archive, board: Board | undefined) {
    this.#sources = sources;
    this.#archive = archive;
    this.#board = board;
    this.#index = new IdIndex(archive);
    this.#log = new RefusalLog(() => sources.nowMs());
    this.#parts = new LimitParts(sources);
    this.#questions = new FleetQuestions(name, sources, board);
    this.#answers = new Answers(name, this.#log.processTag, sources);
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

  /** How many refused requests of the last 24 h cannot be found by their ids, because a flood had too many. Undefined while Redis cannot be read. */
  async unfindable(): Promise<number | undefined> {
    const hour = hourOf(this.#sources.nowMs());
    const names = Array.from({ length: KEPT_HOURS + 1 }, (_, ago) => `${hour - ago}:${UNFINDABLE}`);
    const read = await answered(Promise.all(names.map((name) => this.#archive.read(name))));
    return read
      ?.flatMap((page) => page.toString().split('\n'))
      .reduce((sum, line) => sum + (Number(line) || 0), 0);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#write();
    await this.#board?.close();
    this.#archive.close();
  }

  async #read(id: RefusedId): Promise<WhyRefused | undefined> {
    const hour = hourOf(id.atMs);
    const read = async (one: RefusedId) => (await this.#archive.read(keyOf(one, hour))).toString();
    const lines = await read(id);
    const caller = readCaller(lines, id.number);
    const of = { ...id, number: caller?.of ?? id.number };
    const found = readLines(keyOf(of, hour) === keyOf(id, hour) ? lines : await read(of), of.number);
    return found && { ...found, atMs: id.atMs, caller: caller ?? found.refusal };
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
    const taken = this.#log.take();
    // Lines of a long outage would be made again and again.
    if (this.#isAway && (await answered(this.#archive.read(UNFINDABLE))) === undefined)
      return this.#log.keep(taken);
    // Nothing here should fail. If something does, requests are not lost without being counted.
    await this.#writeTaken(taken).catch(() => this.#log.keep(lost(taken)));
  }

  async #writeTaken({ refusals, callers, ids, unfindable }: Pending): Promise<void> {
    const lines = await this.#linesOf(refusals, callers);
    const asked = await this.#questions.exchange(refusals.filter(({ limited }) => limited !== undefined));
    await this.#answers.add(lines, asked);
    const failed = await this.#append(lines.byKey);
    const isFailed = (one: RefusedId) => failed.size > 0 && failed.has(keyOf(one, hourOf(one.atMs)));
    const late = ids.map(async ([hour, entries]) => {
      const failed = await this.#index.add(hour, entries);
      this.#log.written(entries.length - failed.length);
      return [hour, failed] as const;
    });
    const isCounted = await this.#count(unfindable);
    this.#log.keep({
      refusals: refusals.filter(isFailed),
      callers: callers.filter(isFailed),
      ids: await Promise.all(late),
      unfindable: isCounted ? 0 : unfindable,
    });
    this.#answers.expect(asked.filter((one) => !isFailed(one)));
    this.#index.forgetBefore(this.#sources.nowMs() - KEPT_HOURS * HOUR_MS);
  }

  async #linesOf(refusals: Pending['refusals'], callers: Pending['callers']): Promise<Lines> {
    const lines = new Lines();
    this.#parts.begin();
    for await (const one of inTurns(refusals, PER_TURN)) {
      const part = this.#parts.of(one);
      lines.add(one, callerText(one) + (typeof part === 'string' ? part : await part));
    }
    for await (const one of inTurns(callers, PER_TURN))
      lines.add(one, callerLine(one.number, one.of, idsOf(one.payer)));
    return lines;
  }

  /** Notes how many requests cannot be found. Returns whether that was written. */
  async #count(unfindable: number): Promise<boolean> {
    if (unfindable === 0) return true;
    const name = `${hourOf(this.#sources.nowMs())}:${UNFINDABLE}`;
    const length = await answered(this.#archive.append(name, Buffer.from(`${unfindable}\n`), LIFE_MS));
    if (length === undefined) return false;
    this.#sources.unfindable(unfindable);
    return true;
  }

  /** Returns the keys that could not be written. */
  async #append(lines: ReadonlyMap<string, readonly string[]>): Promise<ReadonlySet<string>> {
    const failed = new Set(lines.keys());
    const appended = [...lines].map(async ([key, texts]) => {
      const bytes = Buffer.from(texts.join(''));
      await this.#archive.append(key, bytes, LIFE_MS).then(
        () => {
          failed.delete(key);
          this.#log.written(bytes.length);
        },
        () => undefined,
      );
    });
    await answered(Promise.all(appended));
    this.#isAway = failed.size > 0;
    return failed;
  }
}

function callerText({ payer, charged, number, atMs, owner }: PendingRefusal): string {
  return callerPart(number, {
    atMs,
    owner,
    ...idsOf(payer),
    remaining: charged.remaining,
    retryAfterMs: Math.ceil(charged.retryAfterUs / 1_000),
  });
}

function idsOf(payer: Payer | undefined): WhyRefused['caller'] {
  return {
    principal: payer?.principal?.id ?? null,
    account: payer?.account ?? null,
    address: payer?.address ?? null,
  };
}
