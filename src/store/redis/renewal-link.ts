import type { Callback } from 'ioredis';
import { pace } from '../../domain/pace.ts';
import type { Renewal, RenewalAnswer } from '../in-flight/renewals.ts';
import { silentObserver } from '../store-observer.ts';
import { openConnection, type RedisConnection } from './connection/redis-connection.ts';
import type { RemoteStoreSettings } from './connection/redis-options.ts';

/** Much longer than a charge may take, because no request waits for it; and shorter than a lease. */
const DEADLINE_MS = 1_000;

/**
 * Renews the slots of this replica on a connection of its own, which is opened with the first renewal: they delay no charge, and
 * their failures say nothing about charges.
 */
export class RenewalLink {
  readonly #settings: RemoteStoreSettings;
  #link: RedisConnection | undefined;
  #isClosed = false;

  constructor(settings: RemoteStoreSettings) {
    this.#settings = settings;
  }

  /** Calls `renewed` once, later: with undefined if there was no answer. */
  send(
    { group, replica, aliveKey, stated }: Renewal,
    renewed: (answer: RenewalAnswer | undefined) => void,
  ): void {
    if (this.#isClosed) return;
    // What is wrong with the connection is reported by the one for charges.
    this.#link ??= openConnection(this.#settings, silentObserver, { ready() {}, lost() {} });
    if (this.#link.problemOf(group) !== undefined) {
      queueMicrotask(() => renewed(undefined));
      return;
    }
    let isOpen = true;
    const end = (answer: RenewalAnswer | undefined) => {
      if (!isOpen) return;
      isOpen = false;
      clearTimeout(timer);
      renewed(answer);
    };
    const timer = setTimeout(() => end(undefined), DEADLINE_MS).unref();
    const answered: Callback<readonly number[]> = (error, [wasAlive, ...places] = []) =>
      end(error ? undefined : { wasAlive: wasAlive === 1, places });
    const keys = [aliveKey, ...stated.map(({ lease }) => lease.key)];
    let text = `${replica} ${pace.leaseMs} ${pace.slotKeyMs}`;
    for (const { lease, generation, held } of stated) text += `,${generation} ${held} ${lease.place}`;
    void this.#link.client.renew([keys.length, ...keys, text], answered);
  }

  close(): void {
    this.#isClosed = true;
    this.#link?.close();
  }
}
