import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { PresentCounts, Recovering } from './journaled-counts.ts';
import type { RecoveryTables } from './recovery-tables.ts';

type Tables = Pick<RecoveryTables, 'present' | 'countsOf'>;

/** Buckets of a recovery that count before its end. Their names take Redis and this replica some MB. */
const MOST_FIRST = 50_000;
const POLL_MS = 20;

/** Puts all present counts back, and meanwhile the counts of the owners who ask before the others. */
export class PuttingBack {
  readonly #tables: Tables;
  readonly #store: Recovering;
  readonly #most: number;
  /** The buckets that were put back before their turn. */
  readonly #first = new Set<string>();
  /** What was sent in turn, and may not be answered. */
  #pages: Promise<unknown> = Promise.resolve();
  #isOver = false;
  readonly found = { buckets: 0, points: 0 };

  constructor(tables: Tables, store: Recovering, most = MOST_FIRST) {
    this.#tables = tables;
    this.#store = store;
    this.#most = most;
  }

  /** @param client in a transaction of its own */
  async all(client: pg.PoolClient): Promise<void> {
    const first = this.#putFirst();
    first.catch(() => {
      this.#isOver = true;
    });
    try {
      await this.#putPages(client);
    } finally {
      this.#isOver = true;
    }
    await first;
  }

  async #putPages(client: pg.PoolClient): Promise<void> {
    for await (const counts of this.#tables.present(client)) {
      if (this.#isOver) return;
      // Redis gets the next counts before it has answered the last ones.
      const last = this.#pages;
      this.#pages = Promise.all([last, this.#put(without(this.#first, counts))]);
      this.#pages.catch(() => undefined);
      await last;
    }
    await this.#pages;
  }

  /** Looks who asks, again and again. */
  async #putFirst(): Promise<void> {
    while (!this.#isOver) {
      const wanted = await this.#store.wanted();
      const keys = wanted.filter((key) => !this.#first.has(key)).slice(0, this.#most - this.#first.size);
      if (keys.length === 0) {
        await setTimeout(POLL_MS);
        continue;
      }
      const counts = await this.#tables.countsOf(keys);
      // From now on they may count less again, when a charge is settled, so what was read before must not be put back.
      for (const key of keys) this.#first.add(key);
      await Promise.all([this.#put(counts), this.#pages]);
      await this.#store.admit(keys);
    }
  }

  async #put(counts: PresentCounts): Promise<void> {
    const { buckets, points } = await this.#store.putBack(counts);
    this.found.buckets += buckets;
    this.found.points += points;
  }
}

function without(left: ReadonlySet<string>, { keys, texts }: PresentCounts): PresentCounts {
  if (left.size === 0 || !keys.some((key) => left.has(key))) return { keys, texts };
  const isKept = (_: unknown, index: number) => !left.has(keys[index] ?? '');
  return { keys: keys.filter(isKept), texts: texts.filter(isKept) };
}
