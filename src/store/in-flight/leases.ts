import { type BucketState, type Charge, type Decision, isConcurrent } from '../store.ts';
import { HeldSlots } from './held-slots.ts';
import {
  type Lease,
  type LeaseLink,
  MOST_STATED,
  type Renewal,
  type RenewalAnswer,
  Renewals,
  type Statement,
} from './renewals.ts';

/** With fewer leases, idle ones are kept for the next request of their owners: a map that each request enters and leaves is slow (decision 11). */
const FEW_LEASES = 2_000;

/** What one call of a store states. */
export interface LeaseCall {
  readonly replica: string;
  /** The key of the replicas that are alive. */
  readonly aliveKey: string;
  /** For each slot of the charges, in their order. */
  readonly asked: readonly Statement[];
  /** For further buckets, which no charge asks for. */
  readonly stated: readonly Statement[];
}

/**
 * The slots that this replica reports to a shared store. The store keeps a count per replica and bucket, which each charge raises and each
 * end lowers. The count is valid for `pace.leaseMs`, and then for as long as the replica renews itself, every second. In turn, the replica
 * states what it really holds of each bucket. The statement replaces the count, so an error in the count lasts no longer than
 * `pace.statementsMs`. After a call whose result is unknown, it is stated at once.
 *
 * A statement begins a generation. With charges in progress, it is sent on their connection: Redis runs the calls of a connection in order,
 * so it decides them before. The statement counts them as admitted (`doubtful`), and gives back the others when their answers arrive.
 */
export class Leases extends HeldSlots<Lease> {
  readonly #link: LeaseLink;
  readonly #renewals: Renewals;
  /** By group. Each has the leases once: see `Lease.isNoted`. */
  readonly #changed = new Map<number, Lease[]>();
  #generation = 1;
  #mostLeases = FEW_LEASES;
  #isFlushing = false;

  constructor(link: LeaseLink) {
    super();
    this.#link = link;
    this.#renewals = new Renewals(link, this.replica, this.buckets, {
      state: (lease) => this.#stateApart(lease),
      drop: (lease) => this.#drop(lease),
      enter: (key) => this.enter(key),
    });
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
    if (!this.#changed.has(group) && !charges.some(asksForSlots)) return undefined;
    const asked = charges.flatMap((charge) =>
      asksForSlots(charge) ? charge.buckets.filter(isConcurrent).map(({ key }) => this.#ask(key)) : [],
    );
    const stated = this.#takeChanged(group);
    if (asked.length + stated.length === 0) return undefined;
    const key = (asked[0] ?? stated[0])?.lease.key ?? '';
    return { replica: this.replica, aliveKey: this.aliveKeyOf(key, group), asked, stated };
  }

  /** The key of the replicas that are alive, for a key of slots. */
  aliveKeyOf(key: string, group: number): string {
    return this.#renewals.aliveKeyOf(key, group);
  }

  /** The store has answered a call in time, with these decisions. */
  answered(charges: readonly Charge[], { asked }: LeaseCall, decisions: readonly Decision[]): void {
    let next = 0;
    for (const [index, charge] of charges.entries()) {
      if (!asksForSlots(charge)) continue;
      const decision = decisions[index];
      for (const [place, bucket] of charge.buckets.entries()) {
        if (isConcurrent(bucket)) this.#settle(asked[next++], decision, place, charge.hold !== undefined);
      }
      if (decision?.outcome === 'admitted') super.take(charge, decision.buckets);
    }
  }

  /**
   * It is unknown whether the store has run a call. The next renewals correct the count, and so does the next charge for a bucket without
   * slots. Retrying immediately could loop forever if calls fail immediately.
   */
  lost({ asked, stated }: LeaseCall): void {
    this.#generation += 1;
    for (const { lease, generation } of asked) {
      lease.pending -= 1;
      if (generation < lease.generation) lease.doubtful -= 1;
      this.#renewals.stateSoon(lease);
    }
    for (const { lease } of stated) {
      // The next charge states it anew.
      if (lease.isIdle) lease.generation = this.#generation;
      this.#renewals.stateSoon(lease);
    }
  }

  /** States every bucket again, a part after the other, and idle ones with their next charges. */
  renew(): void {
    this.#dropIdle();
    this.#renewals.stateAll();
  }

  /** Takes the result of a renewal: see `Renewals.ended`. */
  renewed(renewal: Renewal, answer: RenewalAnswer | undefined): void {
    this.#renewals.ended(renewal, answer);
  }

  /** Sends what has changed, without waiting for the next charge. */
  flush(): void {
    this.#isFlushing = false;
    if (this.#changed.size > 0) this.#link.send(new Set(this.#changed.keys()));
  }

  close(): void {
    this.#renewals.close();
  }

  #ask(key: string): Statement {
    const lease = this.enter(key);
    const asked = this.#state(lease);
    lease.pending += 1;
    return asked;
  }

  /** @param isOwn whether an admitted charge takes a slot of this replica, and not one that outlives it */
  #settle(asked: Statement | undefined, decision: Decision | undefined, place: number, isOwn: boolean): void {
    if (asked === undefined) throw new TypeError('a slot was charged that was not asked for');
    const { lease, generation } = asked;
    const state = decision?.outcome === 'admitted' ? decision.buckets[place] : undefined;
    const isCounted = isOwn && state?.retryAfterUs === 0;
    lease.pending -= 1;
    if (generation < lease.generation) {
      lease.doubtful -= 1;
      if (!isCounted) lease.ended += 1;
      this.#note(lease);
    }
    if (decision === undefined || decision.outcome === 'uncounted') this.#begin(lease);
    else if (!isCounted) this.#restIdle(lease);
  }

  #takeChanged(group: number): readonly Statement[] {
    const changed = this.#changed.get(group);
    if (changed === undefined) return [];
    const stated: Statement[] = [];
    let taken = 0;
    for (const lease of changed) {
      if (stated.length === MOST_STATED) break;
      taken += 1;
      lease.isNoted = false;
      if (lease.isNew || lease.ended > 0) stated.push(this.#state(lease));
      this.#restIdle(lease);
    }
    if (taken === changed.length) this.#changed.delete(group);
    else changed.splice(0, taken);
    return stated;
  }

  #state(lease: Lease): Statement {
    const { generation, ended, held, doubtful } = lease;
    lease.ended = 0;
    lease.isNew = false;
    return { lease, generation, held: held + doubtful, ended };
  }

  /** A statement for a renewal. With charges in progress, it is sent after them, and there is none for the renewal. */
  #stateApart(lease: Lease): Statement | undefined {
    if (lease.pending > 0) {
      this.#begin(lease);
      return undefined;
    }
    this.#beginGeneration(lease);
    return this.#state(lease);
  }

  #begin(lease: Lease): void {
    this.#beginGeneration(lease);
    lease.isNew = true;
    this.#note(lease);
  }

  #beginGeneration(lease: Lease): void {
    this.#generation += 1;
    lease.generation = this.#generation;
    lease.doubtful = lease.pending;
    lease.ended = 0;
  }

  #note(lease: Lease): void {
    if (!lease.isNoted) {
      lease.isNoted = true;
      const changed = this.#changed.get(lease.group);
      if (changed === undefined) this.#changed.set(lease.group, [lease]);
      else changed.push(lease);
    }
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    // A turn later than charges are sent. The next turn's charges usually carry the statements, which spares Redis a call in four.
    setImmediate(() => setImmediate(() => this.flush()));
  }

  protected override enter(key: string): Lease {
    const lease = super.enter(key);
    this.#renewals.used(lease);
    return lease;
  }

  protected override make(key: string): Lease {
    if (this.buckets.size >= this.#mostLeases) this.#dropIdle();
    const group = this.#link.groupOf(key);
    const counts = { held: 0, pending: 0, doubtful: 0, ended: 0, idleTurns: 0, place: 0 };
    const flags = { isNew: false, isNoted: false, isIdle: true };
    return { key, group, generation: this.#generation, ...counts, ...flags };
  }

  #restIdle(lease: Lease): void {
    const { held, pending, ended, isNew } = lease;
    const isIdle = held === 0 && pending === 0 && ended === 0 && !isNew;
    if (isIdle && !this.#renewals.isDue(lease)) this.#renewals.rested(lease);
  }

  #dropIdle(): void {
    for (const lease of this.buckets.values()) if (lease.isIdle) this.#drop(lease);
    this.#mostLeases = Math.max(FEW_LEASES, 2 * this.buckets.size);
  }

  #drop(lease: Lease): void {
    const changed = lease.isNoted ? this.#changed.get(lease.group) : undefined;
    changed?.splice(changed.indexOf(lease), 1);
    this.buckets.delete(lease.key);
    this.#renewals.dropped(lease);
  }
}

/** Whether a store counts a charge in buckets that count concurrent requests. */
function asksForSlots({ hold, heldMs }: Charge): boolean {
  return hold !== undefined || heldMs !== undefined;
}
