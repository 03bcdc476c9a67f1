import { setImmediate } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { LossListener } from '../journal/journaled-counts.ts';
import { markKey } from '../keys.ts';
import type { BucketCharge, Charge, Decision, Settled } from '../store.ts';
import { type StoreObserver, silentObserver } from '../store-observer.ts';
import type { Mark } from './charge-arguments.ts';
import type { RedisConnection } from './connection/redis-connection.ts';
import { WantedBuckets } from './wanted-buckets.ts';

/** Has the script ask Redis. */
const UNKNOWN = '?';
/** What lua/mark.lua uses where INFO is not allowed. */
const NOT_ALLOWED = '-';
/** Such answers are the same in a script. */
const REFUSED = /^(NOPERM|ERR unknown command)/;
const ONLY_EMPTY_NOTICED =
  'INFO shows no master_replid, so only an empty Redis is noticed: counts that the journal could put back after a restart or a failover are missing. Allow the user +info';
/** Groups of keys: the slots of a Cluster, or all keys of another Redis. */
const SLOTS: readonly number[] = Array.from({ length: 16_384 }, (_, slot) => slot);
const ALL_KEYS: readonly number[] = [0];

/**
 * What charges of durable limits expect of the marks: each has the replication id of its Redis. A restored, promoted or emptied Redis has
 * another one, and counts nothing durable until the counts of the journal are put back.
 */
export class Marks {
  readonly #prefix: string;
  readonly wanted: WantedBuckets;
  readonly #found: LossListener;
  #link: RedisConnection | undefined;
  #observer: StoreObserver = silentObserver;
  /** By the server's name. */
  readonly #ids = new Map<string, string>();
  readonly #keys = new Map<number, string>();
  /** Groups whose charges count by what Redis has. */
  #waived: ReadonlySet<number> = new Set();
  #asked = 0;

  constructor(prefix: string, found: LossListener) {
    this.#prefix = prefix;
    this.wanted = new WantedBuckets(prefix);
    this.#found = found;
  }

  /** @param link the connection on which charges are made */
  attach(link: RedisConnection, observer: StoreObserver): void {
    this.#link = link;
    this.#observer = observer;
  }

  /** For charges of a group; undefined if they count by what Redis has. */
  of(group: number): Mark | undefined {
    if (this.#waived.has(group)) return undefined;
    const id = this.#link && this.#ids.get(this.#link.routeOf(group));
    return { key: this.keyOf(group), expected: id ?? UNKNOWN };
  }

  waive(groups: readonly number[]): void {
    this.#waived = new Set([...this.#waived, ...groups]);
  }

  insist(): void {
    if (this.#waived.size > 0) this.#waived = new Set();
  }

  keyOf(group: number): string {
    let key = this.#keys.get(group);
    if (key === undefined) {
      key = markKey(this.#prefix, this.#link?.tagOf(group) ?? '');
      this.#keys.set(group, key);
    }
    return key;
  }

  /** All groups that keys can be in. */
  get groups(): readonly number[] {
    return this.#link?.client instanceof Cluster ? SLOTS : ALL_KEYS;
  }

  groupOf(key: string): number {
    return this.#link?.groupOf(key) ?? 0;
  }

  /** Looks whether charges have found a wrong mark. */
  look(charges: readonly Charge[], decisions: readonly Decision[]): void {
    if (!decisions.some(isRecovering)) return;
    this.#found.missing();
    for (const [index, decision] of decisions.entries())
      if (isRecovering(decision)) for (const bucket of charges[index]?.buckets ?? []) this.#want(bucket);
  }

  #want({ key, record }: BucketCharge): void {
    if (record !== undefined && this.#link !== undefined) this.wanted.want(key, this.#link.client);
  }

  /** Looks whether settlements have found one. */
  lookAt(settled: readonly (Settled | undefined)[]): void {
    if (settled.includes(undefined)) this.#found.missing();
  }

  /** A connection is ready: its server may have lost its data. */
  ready(): void {
    this.changed();
    this.#found.missing();
  }

  /** A connection ended. */
  lost(): void {
    this.#found.left();
    this.changed();
  }

  /** A server may be another one, or have another id. */
  changed(): void {
    const asked = ++this.#asked;
    this.#ids.clear();
    for (const [route, server] of this.#servers()) {
      const learn = (id: string) => {
        if (asked !== this.#asked) return;
        this.#ids.set(route, id);
        const risk = id === NOT_ALLOWED ? ONLY_EMPTY_NOTICED : undefined;
        this.#observer.settingChecked(route, 'replication-id', risk);
        // In a Cluster, a slot that moves to another master takes a wrong mark along.
        if (this.groups.length === 1) this.#found.arrived(id);
      };
      server.info('replication').then(
        (info) => learn(/master_replid:([0-9a-f]+)/.exec(info)?.[1] ?? NOT_ALLOWED),
        ({ message }: Error) => {
          if (REFUSED.test(message)) learn(NOT_ALLOWED);
        },
      );
    }
  }

  /** Resolves when all charges that were sent before are answered, or have failed. Answers come in order. */
  async answered(): Promise<void> {
    await Promise.allSettled([...this.#servers()].map(([, server]) => server.get(this.keyOf(0))));
    // What waits for the answers comes first.
    await setImmediate();
  }

  #servers(): ReadonlyMap<string, Redis> {
    const link = this.#link;
    if (link === undefined) return new Map();
    const { client } = link;
    if (!(client instanceof Cluster)) return new Map([[link.routeOf(0), client]]);
    return new Map(client.nodes('master').map((node) => [`${node.options.host}:${node.options.port}`, node]));
  }
}

function isRecovering(decision: Decision): boolean {
  return decision.outcome === 'uncounted' && decision.reason === 'recovering';
}
