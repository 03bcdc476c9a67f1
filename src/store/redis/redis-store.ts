import type { Awaitable } from '../../domain/awaitable.ts';
import { Batch } from '../dispatch/batch.ts';
import { Breaker } from '../dispatch/breaker.ts';
import { Deadline } from '../dispatch/deadline.ts';
import { TurnBatcher } from '../dispatch/turn-batcher.ts';
import { isValidCharge } from '../dispatch/valid-charge.ts';
import { isConcurrent, slotState } from '../in-flight/held-slots.ts';
import { type LeaseCall, Leases } from '../in-flight/leases.ts';
import type { StoreObserver } from '../observer.ts';
import {
  type BucketCharge,
  type Charge,
  type Decision,
  isOfOneCharge,
  type Store,
  trialBucket,
  type UncountedReason,
} from '../store.ts';
import type { ConnectionEvents, RedisConnection } from './connection/connection.ts';
import { reasonOf } from './connection/failures.ts';
import { NewWindows } from './new-windows.ts';
import { sendCharges } from './send-charges.ts';

/** ioredis's error for a command whose connection ended after it was sent: it may have run. */
const ENDED_BEFORE_ANSWER =
  /^Connection is closed|^Reached the max retries|^Command aborted due to connection close/;

/** One server: its breaker, and what its probes charge. */
interface Route {
  readonly breaker: Breaker;
  /** The group of the last call, and a key in it: the slots of a Cluster move between servers. */
  group: number;
  key: string;
}

/** A batch in progress. */
interface Call {
  readonly batch: Batch;
  readonly route: Route;
}

/**
 * Counts in Redis with the scripts of `lua/`. Charges of one turn of the event loop share a call; a call has a deadline; failures
 * open a breaker per server. Starts without Redis, and counts as soon as it is available.
 */
export class RedisStore implements Store {
  readonly #link: RedisConnection;
  readonly #observer: StoreObserver;
  readonly #deadline: Deadline<Call>;
  readonly #batcher: TurnBatcher;
  readonly #routes = new Map<string, Route>();
  readonly #newWindows = new NewWindows();
  readonly slots: Leases;
  /** Whether this replica alone holds all slots of a bucket. */
  readonly #isFull = (bucket: BucketCharge) =>
    isConcurrent(bucket) && bucket.shadow !== true && this.slots.of(bucket.key) >= bucket.limit;
  #isClosed = false;

  /** @param connectionLost called whenever a connection to Redis ends */
  constructor(
    openConnection: (events: ConnectionEvents) => RedisConnection,
    deadlineMs: number,
    observer: StoreObserver,
    connectionLost: () => void,
  ) {
    this.#observer = observer;
    this.#deadline = new Deadline(
      deadlineMs,
      ({ batch }) => batch.isSettled,
      ({ batch, route }) => this.#failed(batch, route, 'deadline'),
    );
    const ready = () => {
      for (const { breaker } of this.#routes.values()) breaker.probeSoon();
      this.slots.renew();
    };
    this.#link = openConnection({ ready, lost: connectionLost });
    const { groupOf, inOneWrite } = this.#link;
    this.#batcher = new TurnBatcher(groupOf, (batch, group) => this.#send(batch, group), inOneWrite);
    this.slots = new Leases(groupOf, (groups) => inOneWrite(() => this.#state(groups)));
  }

  charge(charge: Charge): Awaitable<Decision> {
    if (!this.#isDecidable(charge)) return this.#uncounted(charge, 'invalid');
    return (charge.hold && this.#denyOwn(charge)) ?? this.#batcher.add(charge);
  }

  async peek(charge: Charge): Promise<Decision> {
    if (!this.#isDecidable(charge)) return this.#uncounted(charge, 'invalid');
    const batch = new Batch('peek');
    const decision = batch.add(charge);
    this.#send(batch, this.#link.groupOf(firstKey(charge)));
    return decision;
  }

  async close(): Promise<void> {
    this.slots.flush();
    this.slots.close();
    this.#isClosed = true;
    this.#batcher.flush();
    for (const { batch } of this.#deadline.pending()) this.#giveUp(batch, 'closed');
    this.#deadline.close();
    for (const { breaker } of this.#routes.values()) breaker.close();
    this.#link.close();
  }

  #isDecidable(charge: Charge): boolean {
    if (!isValidCharge(charge)) return false;
    const { groupOf } = this.#link;
    const { buckets } = charge;
    const group = groupOf(firstKey(charge));
    return buckets.length === 1 || buckets.every(({ key }) => groupOf(key) === group);
  }

  /** The denial of a charge for which this replica alone holds all slots, while the store answers. */
  #denyOwn(charge: Charge): Decision | undefined {
    const { buckets } = charge;
    if (!buckets.some(this.#isFull) || this.#problemOf(this.#link.groupOf(firstKey(charge))) !== undefined) {
      return undefined;
    }
    this.#observer.deniedFromMemory();
    return {
      outcome: 'denied',
      buckets: buckets.map((bucket) => (this.#isFull(bucket) ? slotState(0, false) : undefined)),
    };
  }

  /** Why calls of a group cannot be made. */
  #problemOf(group: number): UncountedReason | undefined {
    return this.#problemAt(group, this.#routes.get(this.#link.routeOf(group)));
  }

  #problemAt(group: number, route: Route | undefined): UncountedReason | undefined {
    if (this.#isClosed) return 'closed';
    return this.#link.problemOf(group) ?? route?.breaker.reason;
  }

  /** States the slots of these groups, with the charges that wait for the end of this turn. */
  #state(groups: ReadonlySet<number>): void {
    this.#batcher.flush();
    for (const group of groups) {
      if (this.#problemOf(group) !== undefined) continue;
      for (;;) {
        const leases = this.slots.open([], group);
        if (leases === undefined) break;
        const batch = new Batch();
        this.#call(batch, this.#route(group, leases.stated[0]?.key ?? ''), leases);
      }
    }
  }

  #uncounted(charge: Charge, reason: UncountedReason): Decision {
    this.#observer.uncounted(reason, charge.cost);
    return { outcome: 'uncounted', reason };
  }

  #send(batch: Batch, group: number): void {
    const { charges } = batch;
    const route = this.#route(group, charges[0] === undefined ? '' : firstKey(charges[0]));
    const reason = this.#problemAt(group, route);
    if (reason !== undefined) this.#giveUp(batch, reason);
    else this.#call(batch, route, batch.kind === 'charge' ? this.slots.open(charges, group) : undefined);
  }

  /** Sends a batch, and settles it in every case. */
  #call(batch: Batch, route: Route, leases?: LeaseCall): void {
    const startMs = performance.now();
    const isCheckingLives = batch.kind === 'charge' && this.#newWindows.areIn(batch.charges, startMs);
    this.#deadline.watch({ batch, route });
    batch.leases = leases;
    sendCharges(
      this.#link.client,
      batch.charges,
      { isSpending: batch.kind !== 'peek', isCheckingLives, leases },
      (error, decisions) => {
        if (error !== undefined) {
          this.#unanswered(batch, route, error.message);
        } else if (batch.isSettled) {
          this.#answeredLate(batch, decisions);
        } else {
          route.breaker.succeeded();
          if (leases !== undefined) this.slots.answered(batch.charges, leases, decisions);
          this.#observer.called(decisions.length, (performance.now() - startMs) * 1000);
          this.#settle(batch, decisions);
        }
      },
    );
  }

  #unanswered(batch: Batch, route: Route, message: string): void {
    if (batch.kind === 'charge' && ENDED_BEFORE_ANSWER.test(message)) {
      this.#observer.unanswered(batch.charges.reduce((points, { cost }) => points + cost, 0));
    }
    if (!batch.isSettled) this.#failed(batch, route, reasonOf(message));
  }

  #settle(batch: Batch, decisions: readonly Decision[]): void {
    for (let index = 0; index < decisions.length; index++) {
      const decision = decisions[index];
      if (decision?.outcome !== 'uncounted' || batch.kind !== 'charge') continue;
      this.#observer.uncounted(decision.reason, batch.charges[index]?.cost ?? 0);
    }
    batch.settle(decisions);
  }

  #answeredLate(batch: Batch, decisions: readonly Decision[]): void {
    let points = 0;
    for (const [index, decision] of decisions.entries()) {
      if (decision.outcome === 'admitted') points += batch.charges[index]?.cost ?? 0;
    }
    if (batch.kind === 'charge' && points > 0) this.#observer.answeredLate(points);
  }

  /** Handles a failed call. If that opens the route's breaker, other calls in progress on the route fail at once. */
  #failed(batch: Batch, route: Route, reason: UncountedReason): void {
    this.#giveUp(batch, reason);
    if (isOfOneCharge(reason)) return;
    route.breaker.failed(reason);
    const cause = route.breaker.reason;
    if (cause === undefined) return;
    for (const call of this.#deadline.pending()) if (call.route === route) this.#giveUp(call.batch, cause);
  }

  #giveUp(batch: Batch, reason: UncountedReason): void {
    if (batch.leases !== undefined) this.slots.lost(batch.leases);
    if (batch.kind === 'charge') for (const { cost } of batch.charges) this.#observer.uncounted(reason, cost);
    batch.giveUp(reason);
  }

  /** @param key one of the group */
  #route(group: number, key: string): Route {
    const name = this.#link.routeOf(group);
    const known = this.#routes.get(name);
    if (known !== undefined) {
      known.group = group;
      known.key = key;
      return known;
    }
    const breaker = new Breaker({
      probe: () => this.#probe(route),
      changed: (state) => {
        this.#observer.breakerChanged(name, state);
        if (state === 'closed') this.slots.renew();
      },
    });
    const route: Route = { breaker, group, key };
    this.#routes.set(name, route);
    this.#observer.breakerChanged(name, 'closed');
    return route;
  }

  /**
   * Charges a bucket of its own, which also detects a Redis that can be read but not written. What another program has put there
   * says nothing about Redis, which has just replaced it.
   */
  async #probe(route: Route): Promise<UncountedReason | undefined> {
    const { group, key } = route;
    const problem = this.#isClosed ? 'closed' : this.#link.problemOf(group);
    if (problem !== undefined) return problem;
    const batch = new Batch('probe');
    const answer = batch.add({ buckets: [trialBucket(`${key}:probe`)], cost: 1 });
    this.#call(batch, route);
    const decision = await answer;
    return decision.outcome === 'uncounted' && !isOfOneCharge(decision.reason) ? decision.reason : undefined;
  }
}

function firstKey(charge: Charge): string {
  return charge.buckets[0]?.key ?? '';
}
