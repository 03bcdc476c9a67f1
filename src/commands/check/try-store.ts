import { setTimeout } from 'node:timers/promises';
import type { Settings } from '../../config/settings/settings.ts';
import { addressOf } from '../../config/settings/store-settings.ts';
import { exactDuration } from '../../domain/duration.ts';
import { noTlsText } from '../../domain/shown.ts';
import type { LossListener } from '../../store/journal/journaled-counts.ts';
import { bucketKey } from '../../store/keys.ts';
import { followStore, openShared, openStore } from '../../store/open-store.ts';
import { type Store, trialBucket, type UncountedReason } from '../../store/store.ts';
import { type StoreObserver, silentObserver } from '../../store/store-observer.ts';
import type { ConnectionResult } from './try-upstreams.ts';

/** Time limit for connecting to a store and counting. */
const CONNECT_MS = 5_000;
const RETRY_MS = 50;

/** Enough keys to reach each master of a Cluster of usual size. */
const CLUSTER_KEYS = 128;

/** The store reads Redis's settings during its first calls, and has them by the third. */
const CALLS = 3;

/** A trial puts nothing back. */
const UNINTERESTED: LossListener = { missing() {}, arrived() {}, left() {} };

/** The TLS of a store comes from its URL or from its settings. */
const NO_TLS = 'store.url may have to begin with redis:, without store.tls';

/** A longer window outlives restarts of Redis. */
const LONG_WINDOW_SECONDS = 3_600;

/**
 * Charges unused buckets, which also detects a Redis that can be read but not written. `longestSeconds` is the longest window
 * whose counts nothing else keeps.
 */
export async function tryStore(
  settings: Settings['store'],
  longestSeconds: number,
  hasJournal: boolean,
): Promise<ConnectionResult> {
  const name = `store ${addressOf(settings)}`;
  const seen = new Seen();
  const followed = hasJournal ? followStore(settings, settings.keyPrefix, UNINTERESTED) : undefined;
  const store = openStore(settings, seen.observer, followed?.marks);
  try {
    const buckets = settings.kind === 'cluster' ? CLUSTER_KEYS : 1;
    const keys = Array.from({ length: buckets }, (_, index) =>
      bucketKey(settings.keyPrefix, `weir-check-${index}`, 'check', 'none'),
    );
    const problem = await chargeAll(store, keys, seen);
    if (problem !== undefined)
      return { name, outcome: 'failed', text: seen.describe(problem, settings.deadlineMs) };
    if (longestSeconds > LONG_WINDOW_SECONDS && (await isForgetful(settings)))
      seen.noteForgetful(longestSeconds);
    return seen.risks === ''
      ? { name, outcome: 'ok', text: seen.latency }
      : { name, outcome: 'warning', text: seen.risks };
  } finally {
    await store.close();
  }
}

/** False if the user of the settings may not ask. */
async function isForgetful(settings: Settings['store']): Promise<boolean> {
  const asked = openShared(settings)?.withRecord('limits', (record) => record.isForgetful());
  return (await asked?.catch(() => false)) ?? false;
}

/** Charges every key until all have been counted `CALLS` times. Returns the reason if that fails. */
async function chargeAll(
  store: Store,
  keys: readonly string[],
  seen: Seen,
): Promise<UncountedReason | undefined> {
  const giveUpMs = performance.now() + CONNECT_MS;
  let counted = 0;
  while (counted < CALLS) {
    const problem = await chargeOnce(store, keys);
    if (problem === undefined) counted++;
    else if (seen.isRefused || performance.now() >= giveUpMs) return problem;
    else await setTimeout(RETRY_MS);
  }
  return undefined;
}

async function chargeOnce(store: Store, keys: readonly string[]): Promise<UncountedReason | undefined> {
  const decisions = await Promise.all(
    keys.map((key) => store.charge({ buckets: [trialBucket(key)], cost: 1 })),
  );
  for (const decision of decisions) if (decision.outcome === 'uncounted') return decision.reason;
  return undefined;
}

/** Events of the store during the trial. */
class Seen {
  #problem: string | undefined;
  #roundTripUs: number | undefined;
  readonly #risks = new Map<string, string>();
  isRefused = false;

  readonly observer: StoreObserver = {
    ...silentObserver,
    called: (_decisions, roundTripUs) => {
      this.#roundTripUs = Math.min(roundTripUs, this.#roundTripUs ?? roundTripUs);
    },
    uncounted: (reason, _points, problem) => {
      this.#problem = problem ?? this.#problem;
      if (reason === 'auth') this.isRefused = true;
    },
    connectionFailed: (reason, message) => {
      this.#problem = message;
      if (reason === 'auth') this.isRefused = true;
    },
    settingChecked: (route, setting, risk) => {
      if (risk !== undefined) this.#risks.set(`${route} ${setting}`, risk);
    },
  };

  noteForgetful(longestSeconds: number): void {
    this.#risks.set(
      'persistence',
      `Redis keeps nothing on disk (appendonly no, save ""): a restart forgets up to ${exactDuration(longestSeconds)} of counts, and limits are exceeded. Set appendonly yes`,
    );
  }

  /** Problems of all servers. */
  get risks(): string {
    return [...new Set(this.#risks.values())].join('; ');
  }

  get latency(): string {
    return this.#roundTripUs === undefined
      ? 'counts'
      : `counts; the fastest call took ${(this.#roundTripUs / 1000).toFixed(1)} ms`;
  }

  describe(reason: UncountedReason, deadlineMs: number): string {
    if (reason === 'deadline') return `no answer within store.deadlineMs (${deadlineMs} ms)`;
    if (reason === 'auth' && this.#problem === undefined)
      return 'auth (its user may not run the commands that count, or not on keys with store.keyPrefix)';
    return this.#problem === undefined
      ? reason
      : `${reason} (${noTlsText(this.#problem, NO_TLS) ?? this.#problem})`;
  }
}
