import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { calendarOf } from '../../../src/domain/limits/calendar.ts';
import type { JournalObserver } from '../../../src/store/journal/journal.ts';
import type { Recovered } from '../../../src/store/journal/journaled-counts.ts';
import { type OpenJournal, openJournal } from '../../../src/store/journal/open-journal.ts';
import type { RecoveryObserver } from '../../../src/store/journal/recovery.ts';
import { bucketKey } from '../../../src/store/keys.ts';
import { openStore } from '../../../src/store/open-store.ts';
import type { RemoteStoreSettings } from '../../../src/store/redis/connection/redis-options.ts';
import { type BucketCharge, type Charge, recordedLimit, type Store } from '../../../src/store/store.ts';
import { isWhole } from '../../fixtures/generated-cases.ts';

export const OWNERS = 20;
/** Between the charges of a load. Without a break it takes all of a core; CI has the most that can happen at once. */
const LOAD_PAUSE_MS = isWhole ? 2 : 20;
const MONTH = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 });
const DAY_SECONDS = 86_400;

/** Replicas of a gateway, as far as they count, and what they have admitted. */
export class Fleet {
  readonly replicas: { journal: OpenJournal; store: Store }[] = [];
  /** By the key of the bucket. */
  readonly admitted = new Map<string, number>();
  readonly outcomes = new Map<string, number>();
  readonly recoveries: Recovered[] = [];
  readonly failures: string[] = [];
  readonly prefix: string;
  readonly #limit: number;
  #isLoading = true;
  #loads: Promise<void>[] = [];

  /** @param limit of each owner, in a window of a day and in a month alike */
  constructor(prefix: string, limit: number) {
    this.prefix = prefix;
    this.#limit = limit;
  }

  start(settings: RemoteStoreSettings, url: string, flushMs = 50): Store {
    const observer: JournalObserver & RecoveryObserver = {
      journalWritten() {},
      journalFailed: ({ message }) => void this.failures.push(message),
      journalUntidy: ({ message }) => void this.failures.push(message),
      journalDropped: (points) => void this.failures.push(`${points} dropped`),
      recovered: (recovered) => void this.recoveries.push(recovered),
      recoveryFailed: ({ message }) => void this.failures.push(message),
      countsGoOn() {},
      countsComplete() {},
    };
    const journal = openJournal({ url, flushMs, fleet: this.prefix, store: settings }, observer);
    const store = journal.recording(openStore(settings, undefined, journal.marks));
    this.replicas.push({ journal, store });
    return store;
  }

  bucketsOf(owner: number): BucketCharge[] {
    const id = `acct_${owner}`;
    return ['day', 'month.p'].map((name) => {
      const key = bucketKey(this.prefix, id, name, id);
      const windowSeconds = DAY_SECONDS;
      const calendar = name === 'day' ? undefined : MONTH;
      const record = recordedLimit({ scope: 'account', name, windowSeconds, calendar });
      return { key, limit: this.#limit, windowSeconds, calendar, record, owner: id };
    });
  }

  async charge(store: Store, owner: number, cost = 1): Promise<string> {
    const charge: Charge = { buckets: this.bucketsOf(owner), cost, operation: 'listPayees' };
    const decision = await store.charge(charge);
    const outcome = decision.outcome === 'uncounted' ? decision.reason : decision.outcome;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    if (outcome === 'admitted') {
      for (const { key } of charge.buckets) this.admitted.set(key, (this.admitted.get(key) ?? 0) + cost);
    }
    return outcome;
  }

  /** The points that were admitted to an owner. */
  admittedTo(owner: number): number {
    return this.admitted.get(this.bucketsOf(owner)[0]?.key ?? '') ?? 0;
  }

  /** Counts what another process has admitted. */
  addAdmitted(points: readonly number[]): void {
    for (const [owner, more] of points.entries()) {
      for (const { key } of this.bucketsOf(owner))
        this.admitted.set(key, (this.admitted.get(key) ?? 0) + more);
    }
  }

  /** Has this replica charge all owners again and again. */
  load(store: Store): void {
    const run = async () => {
      while (this.#isLoading) {
        await Promise.all(Array.from({ length: OWNERS }, (_, owner) => this.charge(store, owner)));
        await pause(LOAD_PAUSE_MS);
      }
    };
    this.#loads.push(run());
  }

  /** Resolves when a charge is decided by the store again, and nothing is being put back. */
  async counting(store: Store): Promise<void> {
    const giveUpMs = performance.now() + 60_000;
    for (;;) {
      const outcome = await this.charge(store, 0);
      if (outcome === 'admitted' || outcome === 'denied') break;
      if (performance.now() > giveUpMs)
        throw new Error(`${outcome}, ${JSON.stringify([...this.outcomes, this.failures])}`);
      await pause(5);
    }
    // An owner who asks counts before the end.
    await Promise.all(this.replicas.map(({ journal }) => journal.recovered()));
  }

  async endLoad(): Promise<void> {
    this.#isLoading = false;
    await Promise.all(this.#loads.splice(0));
    this.#isLoading = true;
  }

  /**
   * Charges each owner until nothing fits, and returns what was admitted above and below the limit of each bucket. If counts are missing
   * again meanwhile, it waits for them: two replicas may have asked for a recovery, one after the other.
   */
  async exhaust(store: Store): Promise<{ over: number; forgotten: number }> {
    const exhaustOne = async (owner: number) => {
      for (let cost = 10 ** Math.floor(Math.log10(this.#limit)); cost >= 1; cost = Math.floor(cost / 10)) {
        for (let outcome = 'admitted'; outcome !== 'denied'; outcome = await this.charge(store, owner, cost))
          if (outcome !== 'admitted') await this.counting(store);
      }
    };
    await Promise.all(Array.from({ length: OWNERS }, (_, owner) => exhaustOne(owner)));
    let [over, forgotten] = [0, 0];
    for (let owner = 0; owner < OWNERS; owner++) {
      for (const { key, limit } of this.bucketsOf(owner)) {
        const admitted = this.admitted.get(key) ?? 0;
        over += Math.max(0, admitted - limit);
        forgotten += Math.max(0, limit - admitted);
      }
    }
    if (over + forgotten > 0) console.error({ outcomes: this.outcomes, failures: this.failures });
    return { over, forgotten };
  }

  async close(): Promise<void> {
    await this.endLoad();
    for (const { store } of this.replicas) await store.close();
  }
}

/** Has PostgreSQL refuse this database, and ends what uses it. */
export async function takeDatabase(serverUrl: string, url: string): Promise<{ giveBack(): Promise<void> }> {
  const name = new URL(url).pathname.slice(1);
  const server = new pg.Client({ connectionString: serverUrl });
  await server.connect();
  await server.query(`alter database ${name} with allow_connections false`);
  await server.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  return {
    async giveBack() {
      await server.query(`alter database ${name} with allow_connections true`);
      await server.end();
    },
  };
}
