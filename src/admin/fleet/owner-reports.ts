import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { pace } from '../../domain/pace.ts';
import { plainLine } from '../../domain/printable.ts';
import type { Ignored } from '../../facts/ignored.ts';
import { parsed } from '../../facts/message-bounds.ts';
import type { Activity, Recent } from '../../observe/usage/activity.ts';
import type { LastRequests } from '../../observe/usage/batch.ts';
import { newSum } from '../../observe/usage/counts.ts';
import { SERIES_SLICES } from '../../observe/usage/windows.ts';
import type { Board, BoardReading } from '../../store/shared-store.ts';
import { unknownSince } from '../freshness.ts';
import { answered, readOthers } from './boards.ts';
import {
  type Asked,
  asAsked,
  asEndedRequest,
  asPublication,
  type EndedRequest,
  LONGEST_OPERATION,
  MOST_ASKED,
  MOST_REFUSALS,
  MOST_REQUESTS,
  type OwnerReport,
  type PublishedReports,
} from './owner-report.ts';
import { type OwnerSum, sumOf } from './owner-sum.ts';
import { asRefusedRequest, type Refusals, type RefusedOwner } from './refusals.ts';

/** Replicas report on an owner for as long after somebody has asked. */
const ASKED_MS = 5_000;

/** Owners, and ids of requests, that a replica reports on at a time. */
const MOST_REPORTS = 32;

/** How long a first question waits for the replicas. */
const LONGEST_WAIT_MS = 2_500;
const LOOK_MS = 100;

/** Where the replicas meet. */
interface ReportBoards {
  /** What a replica was asked about, while it was. */
  readonly asked: Board;
  /** What each replica reports. */
  readonly reports: Board;
}

const IDLE: Recent = {
  windows: { '10s': newSum(), '1m': newSum(), '10m': newSum() },
  operations: [],
  accounts: { floor: 0, rows: [] },
  series: Array.from({ length: SERIES_SLICES }, newSum),
};

/**
 * What one owner did lately at all replicas, and which requests had an id. A replica that is asked about an owner says so on one board, and for the next seconds all
 * replicas put their counts of that owner on another: publishing the counts of all owners all the time would take megabytes.
 */
export class OwnerReports {
  readonly #replica: string;
  readonly #sources;
  readonly #boards: ReportBoards | undefined;
  readonly #ended = new AbortController();
  /** Until when this replica asks about something, on the monotonic clock. */
  readonly #asked = new Map<string, { readonly asked: Asked; readonly untilMs: number }>();
  #reading: { readonly atMs: number; readonly others: Promise<OtherReports> } | undefined;

  /** @param boards undefined where this process is the only replica */
  constructor(
    replica: string,
    sources: {
      readonly activity: Activity;
      readonly refusals: Refusals;
      readonly requests: Pick<LastRequests, 'find'>;
      /** Unix time by the clock of Redis. */
      nowMs(): number;
      readonly ignored: Ignored;
    },
    boards: ReportBoards | undefined,
  ) {
    this.#replica = replica;
    this.#sources = sources;
    this.#boards = boards;
    if (boards !== undefined) void this.#publish(boards);
  }

  /** The sum over the replicas. The first time, it waits up to two seconds for their reports if `waits`. */
  async sumOf(owner: Asked, waits: boolean): Promise<OwnerSum> {
    return this.#answersTo(owner, waits, (others) => {
      const sum = this.#sum(owner, others);
      return { result: sum, isWhole: sum.replicas === sum.ofReplicas || sum.ofReplicas === null };
    });
  }

  /** The requests with this id that ended in the last minutes at any replica, the last one first. Waits up to two seconds for the others. */
  async requestsWith(id: string): Promise<readonly EndedRequest[]> {
    return this.#answersTo({ scope: 'account', id, isRequest: true }, true, (others) => {
      const answers = [...(others?.values() ?? [])].map(
        ({ requests }) => requests?.find((one) => one.id === id)?.found,
      );
      const found = [...this.#requestsWith(id), ...answers.flatMap((some) => some ?? [])];
      const lastFirst = found.sort((a, b) => b.atMs - a.atMs).slice(0, MOST_REQUESTS);
      return { result: lastFirst, isWhole: !answers.includes(undefined) };
    });
  }

  /**
   * Like `sumOf`, but never waits. Callers who ask about themselves use it, so that they cannot crowd out an operator. If many owners are
   * asked about, the sum covers this replica and the replicas that report on this owner anyway.
   */
  async sumIfRoom(owner: RefusedOwner): Promise<OwnerSum> {
    const yielding = { ...owner, yields: true };
    if (this.#hasRoomFor(owner)) return this.sumOf(yielding, false);
    return this.#sum(owner, await this.#readOthers());
  }

  /** The host names of the replicas that report. */
  async names(): Promise<ReadonlyMap<string, string>> {
    const others = [...((await this.#readOthers()) ?? [])].map(([id, { name }]) => [id, name ?? id] as const);
    return new Map([[this.#replica, hostname()], ...others]);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await Promise.all([this.#boards?.asked.close(), this.#boards?.reports.close()]);
  }

  /** Asks, and makes the result of what the others report: once if it does not wait, or until it is whole. */
  async #answersTo<Result>(
    asked: Asked,
    waits: boolean,
    resultOf: (others: OtherReports) => { readonly result: Result; readonly isWhole: boolean },
  ): Promise<Result> {
    if (this.#ask(asked)) await answered(this.#boards?.asked.post(this.#askedText));
    const untilMs = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      const { result, isWhole } = resultOf(await this.#readOthers());
      if (isWhole || !waits || performance.now() > untilMs) return result;
      await setTimeout(LOOK_MS);
      this.#reading = undefined;
    }
  }

  #sum(owner: RefusedOwner, others: OtherReports): OwnerSum {
    const reports = [...(others?.values() ?? [])].flatMap(({ reports }) => {
      const found = reports.find((one) => keyOf(one.owner) === keyOf(owner));
      return found === undefined ? [] : [found];
    });
    const ofReplicas = others === undefined ? null : others.size + 1;
    return sumOf([this.#reportOn(owner), ...reports], this.#boards === undefined ? 1 : ofReplicas);
  }

  #reportOn(owner: RefusedOwner): OwnerReport {
    const { activity, refusals } = this.#sources;
    const recent = activity.recentOf(owner.scope, owner.id, performance.now()) ?? IDLE;
    return { ...recent, refusals: refusals.of(owner).slice(0, MOST_REFUSALS) };
  }

  #requestsWith(id: string): readonly EndedRequest[] {
    const { requests, nowMs } = this.#sources;
    const aheadMs = nowMs() - performance.now();
    return requests
      .find(id, MOST_REQUESTS)
      .flatMap(({ endedMs, status, operation = null, account, address, reason = null }) => {
        const atMs = Math.round(endedMs + aheadMs);
        return asEndedRequest({ atMs, status, operation, owner: account ?? address ?? null, reason }) ?? [];
      });
  }

  /** Returns whether the other replicas do not report on it yet. */
  #ask(asked: Asked): boolean {
    // An operator may ask for any text. Other replicas would not read what else is asked for, nor the reports.
    if (asAsked([asked])?.length !== 1) return false;
    const nowMs = performance.now();
    for (const [key, { untilMs }] of this.#asked) if (untilMs <= nowMs) this.#asked.delete(key);
    const key = keyOf(asked);
    const known = this.#asked.get(key)?.asked;
    this.#asked.delete(key);
    const isWanted = known !== undefined && !known.yields;
    this.#asked.set(key, { asked: isWanted ? known : asked, untilMs: nowMs + ASKED_MS });
    if (this.#asked.size > MOST_ASKED) this.#asked.delete(this.#leastWanted);
    if (known === undefined) this.#reading = undefined;
    return known === undefined;
  }

  #hasRoomFor(owner: RefusedOwner): boolean {
    return this.#asked.has(keyOf(owner)) || this.#askedHere.length < MOST_ASKED;
  }

  get #leastWanted(): string {
    const keys = [...this.#asked.keys()];
    return keys.find((key) => this.#asked.get(key)?.asked.yields) ?? keys[0] ?? '';
  }

  #readOthers(): Promise<OtherReports> {
    const nowMs = performance.now();
    if (this.#reading === undefined || nowMs - this.#reading.atMs > pace.reportsReadingMs) {
      this.#reading = { atMs: nowMs, others: this.#readBoard() };
    }
    return this.#reading.others;
  }

  async #readBoard(): Promise<OtherReports> {
    const { ignored, nowMs } = this.#sources;
    const read = (text: string) => asPublication(parsed(text), ignored);
    const others = await readOthers(this.#boards?.reports, this.#replica, ignored, read);
    const ofNow = [...(others ?? [])].filter(
      ([, { takenAtMs }]) => unknownSince(takenAtMs, nowMs()) === null,
    );
    return others && new Map(ofNow);
  }

  async #publish({ asked, reports }: ReportBoards): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      // The store's own metrics and log report a Redis that does not answer.
      const reading = await answered(asked.read());
      // Of what several ask about, the last one counts.
      const inOrder = [...this.#askedBy(reading)].sort((a, b) => rankOf(a) - rankOf(b));
      const byKey = new Map(inOrder.map((one) => [keyOf(one), one]));
      await answered(reports.post(this.#textOf([...byKey.values()])));
      if (this.#askedHere.length > 0) await answered(asked.post(this.#askedText));
      await setTimeout(pace.publishMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** What any replica asks about. */
  *#askedBy(reading: BoardReading | undefined): Generator<Asked> {
    yield* this.#askedHere;
    const { ignored } = this.#sources;
    for (const text of reading?.texts.values() ?? []) {
      const asked = asAsked(parsed(text), ignored);
      if (asked === undefined) ignored.add('form');
      else yield* asked;
    }
  }

  #textOf(asked: readonly Asked[]): string {
    const known = asked.slice(0, MOST_REPORTS);
    const reports = known
      .filter(({ isRequest }) => !isRequest)
      .map(({ scope, id }) => {
        return { owner: { scope, id }, ...readable(this.#reportOn({ scope, id })) };
      });
    const requests = known
      .filter(({ isRequest }) => isRequest)
      .map(({ id }) => ({ id, found: this.#requestsWith(id) }));
    return JSON.stringify({ takenAtMs: this.#sources.nowMs(), name: hostname(), reports, requests });
  }

  /** What this replica asks about. */
  get #askedHere(): readonly Asked[] {
    const nowMs = performance.now();
    return [...this.#asked.values()].filter(({ untilMs }) => nowMs < untilMs).map(({ asked }) => asked);
  }

  get #askedText(): string {
    return JSON.stringify(this.#askedHere);
  }
}

/** Undefined while Redis cannot be read. */
type OtherReports = ReadonlyMap<string, PublishedReports> | undefined;

/** Operators come first. */
function rankOf({ yields }: Asked): number {
  return yields ? 1 : 0;
}

function keyOf({ scope, id, isRequest }: Asked): string {
  return `${isRequest ? 'request' : scope} ${id}`;
}

/** A report that other replicas can read. The id of an operation is what its document says. */
function readable({ operations, refusals, ...recent }: OwnerReport): OwnerReport {
  const named = operations.map((one) => ({
    ...one,
    operation: plainLine(one.operation, LONGEST_OPERATION),
  }));
  return { ...recent, operations: named, refusals: refusals.flatMap((one) => asRefusedRequest(one) ?? []) };
}
