import { setTimeout } from 'node:timers/promises';
import type { Activity, Recent } from '../../observe/usage/activity.ts';
import { newSum } from '../../observe/usage/counts.ts';
import { SERIES_SLICES } from '../../observe/usage/windows.ts';
import { parsed } from '../../shared/bounds.ts';
import type { Ignored } from '../../shared/ignored.ts';
import type { Board, BoardReading } from '../../store/shared-store.ts';
import { PERIOD_MS, unknownSince } from '../console/browser/widgets/freshness.ts';
import { answered } from './answered.ts';
import {
  asOwners,
  asPublication,
  MOST_ASKED,
  MOST_REFUSALS,
  type OwnerReport,
  type Publication,
} from './owner-report.ts';
import { type OwnerSum, sumOf } from './owner-sum.ts';
import type { Refusals, RefusedOwner } from './refusals.ts';

/** Replicas report on an owner for as long after somebody has asked. */
const ASKED_MS = 5_000;

/** Owners that a replica reports on at a time. */
const MOST_REPORTS = 32;

/** A reading of the board is used for so long, and a first question waits so long for the replicas. */
const READING_LIFE_MS = 400;
const LONGEST_WAIT_MS = 2.5 * PERIOD_MS;
const LOOK_MS = 100;

interface ReportSources {
  readonly activity: Pick<Activity, 'recentOf'>;
  readonly refusals: Pick<Refusals, 'of'>;
  /** Unix time by the clock of Redis. */
  nowMs(): number;
  readonly ignored: Pick<Ignored, 'add'>;
}

/** Where the replicas meet. */
export interface ReportBoards {
  /** Whom a replica was asked about, while it was. */
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
 * What one owner did lately at all replicas. A replica that is asked about an owner says so on one board, and for the next seconds all
 * replicas put their counts of that owner on another: to publish those of all owners all the time would take megabytes.
 */
export class OwnerReports {
  readonly #replica: string;
  readonly #sources: ReportSources;
  readonly #boards: ReportBoards | undefined;
  readonly #ended = new AbortController();
  /** Until when this replica asks about an owner, on the monotonic clock. */
  readonly #asked = new Map<string, { readonly owner: RefusedOwner; readonly untilMs: number }>();
  #reading: { readonly atMs: number; readonly others: Promise<Others> } | undefined;

  /** @param boards undefined where this process is the only replica */
  constructor(replica: string, sources: ReportSources, boards: ReportBoards | undefined) {
    this.#replica = replica;
    this.#sources = sources;
    this.#boards = boards;
    if (boards !== undefined) void this.#publish(boards);
  }

  /** The sum over the replicas. The first time, it waits up to two seconds for their reports if `waits`. */
  async sumOf(owner: RefusedOwner, waits: boolean): Promise<OwnerSum> {
    if (this.#ask(owner)) await answered(this.#boards?.asked.post(this.#askedText));
    const untilMs = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      const others = await this.#readOthers();
      const sum = this.#sum(owner, others);
      const isWhole = sum.replicas === sum.ofReplicas || sum.ofReplicas === null;
      if (isWhole || !waits || performance.now() > untilMs) return sum;
      await setTimeout(LOOK_MS);
      this.#reading = undefined;
    }
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await Promise.all([this.#boards?.asked.close(), this.#boards?.reports.close()]);
  }

  #sum(owner: RefusedOwner, others: Others): OwnerSum {
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

  /** Returns whether the other replicas do not report on this owner yet. */
  #ask(owner: RefusedOwner): boolean {
    const nowMs = performance.now();
    for (const [key, { untilMs }] of this.#asked) if (untilMs <= nowMs) this.#asked.delete(key);
    const key = keyOf(owner);
    const isFirst = !this.#asked.has(key);
    this.#asked.delete(key);
    this.#asked.set(key, { owner, untilMs: nowMs + ASKED_MS });
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > MOST_ASKED && oldest !== undefined) this.#asked.delete(oldest);
    if (isFirst) this.#reading = undefined;
    return isFirst;
  }

  #readOthers(): Promise<Others> {
    const nowMs = performance.now();
    if (this.#reading === undefined || nowMs - this.#reading.atMs > READING_LIFE_MS) {
      this.#reading = { atMs: nowMs, others: this.#readBoard() };
    }
    return this.#reading.others;
  }

  async #readBoard(): Promise<Others> {
    const reading = await answered(this.#boards?.reports.read());
    return reading && this.#othersIn(reading);
  }

  #othersIn({ texts, leftOut }: BoardReading): ReadonlyMap<string, Publication> {
    const { ignored } = this.#sources;
    if (leftOut > 0) ignored.add('length', leftOut);
    const others = new Map<string, Publication>();
    const nowMs = this.#sources.nowMs();
    for (const [replica, text] of texts) {
      if (replica === this.#replica) continue;
      const read = asPublication(parsed(text));
      if (read === undefined) ignored.add('form');
      else if (unknownSince(read.takenAtMs, nowMs) === null) others.set(replica, read);
    }
    return others;
  }

  async #publish({ asked, reports }: ReportBoards): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      // The store's own metrics and log report a Redis that does not answer.
      const reading = await answered(asked.read());
      const owners = new Map([...this.#askedBy(reading)].map((owner) => [keyOf(owner), owner]));
      await answered(reports.post(this.#textOf([...owners.values()])));
      if (this.#owners.length > 0) await answered(asked.post(this.#askedText));
      await setTimeout(PERIOD_MS, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Whom any replica asks about. */
  *#askedBy(reading: BoardReading | undefined): Generator<RefusedOwner> {
    yield* this.#owners;
    for (const text of reading?.texts.values() ?? []) {
      const owners = asOwners(parsed(text));
      if (owners === undefined) this.#sources.ignored.add('form');
      else yield* owners;
    }
  }

  #textOf(owners: readonly RefusedOwner[]): string {
    const reports = owners.slice(0, MOST_REPORTS).map((owner) => ({ owner, ...this.#reportOn(owner) }));
    return JSON.stringify({ takenAtMs: this.#sources.nowMs(), reports });
  }

  /** Whom this replica asks about. */
  get #owners(): readonly RefusedOwner[] {
    const nowMs = performance.now();
    return [...this.#asked.values()].filter(({ untilMs }) => nowMs < untilMs).map(({ owner }) => owner);
  }

  get #askedText(): string {
    return JSON.stringify(this.#owners);
  }
}

/** Undefined while Redis cannot be read. */
type Others = ReadonlyMap<string, Publication> | undefined;

function keyOf({ scope, id }: RefusedOwner): string {
  return `${scope} ${id}`;
}
