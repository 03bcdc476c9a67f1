import type { Awaitable } from '../../domain/awaitable.ts';
import { Batch } from '../dispatch/batch.ts';
import { Breaker } from '../dispatch/breaker.ts';
import { Deadline } from '../dispatch/deadline.ts';
import { TurnBatcher } from '../dispatch/turn-batcher.ts';
import { isValidCharge } from '../dispatch/valid-charge.ts';
import type { StoreObserver } from '../observer.ts';
import { type Charge, type Decision, type Store, trialBucket, type UncountedReason } from '../store.ts';
import type { ConnectionEvents, RedisConnection } from './connection/connection.ts';
import { reasonOf } from './connection/failures.ts';
import { NewWindows } from './new-windows.ts';
import { sendCharges } from './scripts.ts';

/** ioredis's error for a command whose connection ended after it was sent: it may have run. */
const ENDED_BEFORE_ANSWER =
  /^Connection is closed|^Reached the max retries|^Command aborted due to connection close/;

/** One server: its breaker, and a key that only its probes write. */
interface Route {
  readonly breaker: Breaker;
  readonly probeKey: string;
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
    };
    this.#link = openConnection({ ready, lost: connectionLost });
    const { groupOf, inOneWrite } = this.#link;
    this.#batcher = new TurnBatcher(groupOf, (batch, group) => this.#send(batch, group), inOneWrite);
  }

  charge(charge: Charge): Awaitable<Decision> {
    if (!this.#isDecidable(charge)) return this.#uncounted(charge, 'invalid');
    return this.#batcher.add(charge);
  }

  async peek(charge: Charge): Promise<Decision> {
    if (!this.#isDecidable(charge)) return this.#uncounted(charge, 'invalid');
    const batch = new Batch('peek');
    const decision = batch.add(charge);
    this.#send(batch, this.#link.groupOf(firstKey(charge)));
    return decision;
  }

  async close(): Promise<void> {
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
    return buckets.length === 1 || buckets.every(({ key }) => groupOf(key) === groupOf(firstKey(charge)));
  }

  #uncounted(charge: Charge, reason: UncountedReason): Decision {
    this.#observer.uncounted(reason, charge.cost);
    return { outcome: 'uncounted', reason };
  }

  #send(batch: Batch, group: number): void {
    const route = this.#route(group, batch);
    const reason = this.#isClosed ? 'closed' : (this.#link.problemOf(group) ?? route.breaker.reason);
    if (reason === undefined) this.#call(batch, route, group);
    else this.#giveUp(batch, reason);
  }

  /** Sends a batch, and settles it in every case. */
  #call(batch: Batch, route: Route, slot: number): void {
    const startMs = performance.now();
    const isCheckingLives = batch.kind === 'charge' && this.#newWindows.areIn(batch.charges, startMs);
    this.#deadline.watch({ batch, route });
    sendCharges(
      this.#link.client,
      batch.charges,
      { slot, isSpending: batch.kind !== 'peek', isCheckingLives },
      (error, decisions) => {
        if (error !== undefined) {
          this.#unanswered(batch, route, error.message);
        } else if (batch.isSettled) {
          this.#answeredLate(batch, decisions);
        } else {
          route.breaker.succeeded();
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
    for (const [index, decision] of decisions.entries()) {
      if (decision.outcome !== 'uncounted' || batch.kind !== 'charge') continue;
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
    if (reason === 'wrongtype' || reason === 'invalid') return; // One bucket's trouble, not the store's.
    route.breaker.failed(reason);
    const cause = route.breaker.reason;
    if (cause === undefined) return;
    for (const call of this.#deadline.pending()) if (call.route === route) this.#giveUp(call.batch, cause);
  }

  #giveUp(batch: Batch, reason: UncountedReason): void {
    if (batch.kind === 'charge') for (const { cost } of batch.charges) this.#observer.uncounted(reason, cost);
    batch.giveUp(reason);
  }

  #route(group: number, batch: Batch): Route {
    const name = this.#link.routeOf(group);
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    const [charge] = batch.charges;
    const probeKey = `${charge === undefined ? '' : firstKey(charge)}:probe`;
    const breaker = new Breaker({
      probe: () => this.#probe(route, group),
      changed: (state) => this.#observer.breakerChanged(name, state),
    });
    const route: Route = { breaker, probeKey };
    this.#routes.set(name, route);
    this.#observer.breakerChanged(name, 'closed');
    return route;
  }

  /** Charges a bucket of its own, which also detects a Redis that can be read but not written. */
  async #probe(route: Route, group: number): Promise<UncountedReason | undefined> {
    const problem = this.#isClosed ? 'closed' : this.#link.problemOf(group);
    if (problem !== undefined) return problem;
    const batch = new Batch('probe');
    const answer = batch.add({ buckets: [trialBucket(route.probeKey)], cost: 1 });
    this.#call(batch, route, group);
    const decision = await answer;
    return decision.outcome === 'uncounted' ? decision.reason : undefined;
  }
}

function firstKey(charge: Charge): string {
  return charge.buckets[0]?.key ?? '';
}
