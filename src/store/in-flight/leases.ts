import { pace } from '../../domain/pace.ts';
import type { BucketState, Charge, Decision } from '../store.ts';
import { HeldSlots, isConcurrent } from './held-slots.ts';

/** After so many renewals without a slot, the lease has expired in the store. */
const MOST_IDLE_RENEWALS = 4;

/** Buckets that one call states in addition to its charges. */
const MOST_STATED = 128;

/** What this replica knows of its slots in one bucket. */
interface Lease {
  readonly key: string;
  held: number;
  readonly group: number;
  /** A statement replaces the statements of earlier generations. */
  generation: number;
  /** Charges that have been sent and not answered. */
  pending: number;
  /** How many of them this generation's statement counts as held: the store may have admitted them before it. */
  doubtful: number;
  /** Slots given back since the last statement. */
  ended: number;
  /** Whether the store has not been sent this generation. */
  isNew: boolean;
  /** Renewals in a row at which nothing was held. */
  idleRenewals: number;
}

/** What a call states about one bucket: see lua/charge.lua. */
export interface Statement {
  readonly lease: Lease;
  readonly generation: number;
  readonly held: number;
  readonly ended: number;
}

/** What one call of a store states. */
export interface LeaseCall {
  readonly replica: string;
  /** For each slot of the charges, in their order. */
  readonly asked: readonly Statement[];
  /** For further buckets, which no charge asks for. */
  readonly stated: readonly Statement[];
}

/**
 * The slots that this replica reports to a shared store. The store keeps a count per replica and bucket, which each charge raises and each
 * end lowers. The count is valid for `pace.leaseMs`. Every second, a renewal replaces it by what this replica really holds, so that an error in
 * the count lasts no longer.
 *
 * A renewal begins a generation. Redis runs the calls of a connection in order, so it decides all charges in progress before the renewal.
 * The renewal counts them as admitted (`doubtful`), and gives back the others when their answers arrive.
 */
export class Leases extends HeldSlots<Lease> {
  readonly #groupOf: (key: string) => number;
  readonly #send: (groups: ReadonlySet<number>) => void;
  readonly #changed = new Map<number, Set<Lease>>();
  #generation = 1;
  #isFlushing = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param groupOf names the keys that may share a call
   * @param send called with the groups that have something to state; it calls `open` for each of them
   */
  constructor(groupOf: (key: string) => number, send: (groups: ReadonlySet<number>) => void) {
    super();
    this.#groupOf = groupOf;
    this.#send = send;
  }

  /** Counts the slots of a request that is served although the store has not decided. */
  override take(charge: Charge, states?: readonly BucketState[]): void {
    if (charge.hold === undefined || charge.hold.isTaken) return;
    super.take(charge, states);
    for (const { key } of charge.buckets.filter(isConcurrent)) this.#begin(this.enter(key));
  }

  protected override release(lease: Lease): void {
    super.release(lease);
    lease.ended += 1;
    this.#note(lease);
  }

  /** What the next call of a group states; undefined if that is nothing. The call has to be sent, or be `lost`. */
  open(charges: readonly Charge[], group: number): LeaseCall | undefined {
    if (!this.#changed.has(group) && charges.every(({ hold }) => hold === undefined)) return undefined;
    const asked: Statement[] = [];
    for (const { buckets, hold } of charges) {
      if (hold === undefined) continue;
      for (const bucket of buckets) if (isConcurrent(bucket)) asked.push(this.#ask(bucket.key));
    }
    const stated = this.#takeChanged(group);
    return asked.length + stated.length === 0 ? undefined : { replica: this.replica, asked, stated };
  }

  /** The store has answered a call in time, with these decisions. */
  answered(charges: readonly Charge[], { asked }: LeaseCall, decisions: readonly Decision[]): void {
    let next = 0;
    for (const [index, charge] of charges.entries()) {
      if (charge.hold === undefined) continue;
      const decision = decisions[index];
      for (const [place, bucket] of charge.buckets.entries()) {
        if (isConcurrent(bucket)) this.#settle(asked[next++], decision, place);
      }
      if (decision?.outcome === 'admitted') super.take(charge, decision.buckets);
    }
  }

  /**
   * It is unknown whether the store has run a call. The next renewal corrects the count, and so does the next charge for a bucket without
   * slots. Retrying immediately could loop forever if calls fail immediately.
   */
  lost({ asked }: LeaseCall): void {
    this.#generation += 1;
    for (const { lease, generation } of asked) {
      lease.pending -= 1;
      if (generation < lease.generation) lease.doubtful -= 1;
    }
  }

  /** States every bucket again. */
  renew(): void {
    for (const lease of this.buckets.values()) {
      lease.idleRenewals = lease.pending > 0 || lease.held > 0 ? 0 : lease.idleRenewals + 1;
      if (lease.idleRenewals < MOST_IDLE_RENEWALS) this.#begin(lease);
      else this.#drop(lease);
    }
  }

  /** Sends what has changed, without waiting for the next charge. */
  flush(): void {
    this.#isFlushing = false;
    if (this.#changed.size > 0) this.#send(new Set(this.#changed.keys()));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #ask(key: string): Statement {
    const lease = this.enter(key);
    const asked = this.#state(lease);
    lease.pending += 1;
    return asked;
  }

  #settle(asked: Statement | undefined, decision: Decision | undefined, place: number): void {
    if (asked === undefined) throw new TypeError('a slot was charged that was not asked for');
    const { lease, generation } = asked;
    const state = decision?.outcome === 'admitted' ? decision.buckets[place] : undefined;
    const isCounted = state?.retryAfterUs === 0;
    lease.pending -= 1;
    if (generation < lease.generation) {
      lease.doubtful -= 1;
      if (!isCounted) lease.ended += 1;
      this.#note(lease);
    }
    if (decision === undefined || decision.outcome === 'uncounted') this.#begin(lease);
    else if (!isCounted) this.#forgetIdle(lease);
  }

  #takeChanged(group: number): readonly Statement[] {
    const changed = this.#changed.get(group);
    if (changed === undefined) return [];
    const stated: Statement[] = [];
    for (const lease of changed) {
      if (stated.length === MOST_STATED) break;
      changed.delete(lease);
      if (lease.isNew || lease.ended > 0) stated.push(this.#state(lease));
      this.#forgetIdle(lease);
    }
    if (changed.size === 0) this.#changed.delete(group);
    return stated;
  }

  #state(lease: Lease): Statement {
    const { generation, ended, held, doubtful } = lease;
    lease.ended = 0;
    lease.isNew = false;
    return { lease, generation, held: held + doubtful, ended };
  }

  #begin(lease: Lease): void {
    this.#generation += 1;
    lease.generation = this.#generation;
    lease.doubtful = lease.pending;
    lease.ended = 0;
    lease.isNew = true;
    this.#note(lease);
  }

  #note(lease: Lease): void {
    const changed = this.#changed.get(lease.group);
    if (changed === undefined) this.#changed.set(lease.group, new Set([lease]));
    else changed.add(lease);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    // A turn later than charges are sent. The next turn's charges usually carry the statements, which spares Redis a call in four.
    setImmediate(() => setImmediate(() => this.flush()));
  }

  protected override make(key: string): Lease {
    this.#timer ??= setInterval(() => this.renew(), pace.renewalMs).unref();
    const counts = { held: 0, pending: 0, doubtful: 0, ended: 0, idleRenewals: 0 };
    return { key, group: this.#groupOf(key), generation: this.#generation, ...counts, isNew: false };
  }

  #forgetIdle(lease: Lease): void {
    const { held, pending, ended, isNew } = lease;
    if (held === 0 && pending === 0 && ended === 0 && !isNew) this.#drop(lease);
  }

  #drop(lease: Lease): void {
    this.#changed.get(lease.group)?.delete(lease);
    this.buckets.delete(lease.key);
    if (this.buckets.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
