import { randomBytes } from 'node:crypto';
import type { Awaitable } from '../../domain/awaitable.ts';
import { Deadline } from '../dispatch/deadline.ts';
import { Batch, TurnBatcher } from '../dispatch/turn-batcher.ts';
import { type LeaseCall, Leases } from '../in-flight/leases.ts';
import {
  type Charge,
  countedPart,
  type Decision,
  isConcurrent,
  isOfOneCharge,
  isValidCharge,
  isValidSettlement,
  type Settled,
  type Settlement,
  type Store,
  trialBucket,
  type UncountedReason,
} from '../store.ts';
import type { StoreObserver } from '../store-observer.ts';
import { openConnection, type RedisConnection } from './connection/redis-connection.ts';
import { mayHaveRun, reasonOf, shownError } from './connection/redis-failures.ts';
import type { RemoteStoreSettings } from './connection/redis-options.ts';
import type { Marks } from './marks.ts';
import { NewWindows } from './new-windows.ts';
import { PendingSettlements } from './pending-settlements.ts';
import { PeriodClock } from './period-clock.ts';
import { RenewalLink } from './renewal-link.ts';
import { sendCharges } from './send-charges.ts';
import { sendSettlements } from './send-settlements.ts';
import { type ServerRoute, ServerRoutes } from './server-routes.ts';

type Admitted = Extract<Decision, { outcome: 'admitted' }>;

/** Of the name of a settlement. */
const ID_BYTES = 12;

/** A batch in progress. */
interface Call {
  readonly batch: Batch;
  readonly route: ServerRoute;
  /** What it states of this replica's slots. */
  readonly leases?: LeaseCall | undefined;
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
  readonly #settlements: PendingSettlements;
  readonly #routes: ServerRoutes;
  readonly #newWindows = new NewWindows();
  readonly #clock = new PeriodClock();
  readonly #renewals: RenewalLink;
  readonly #marks: Marks | undefined;
  readonly slots: Leases;
  #isClosed = false;

  /** @param connectionLost called whenever a connection to Redis ends */
  constructor(
    settings: RemoteStoreSettings,
    observer: StoreObserver,
    connectionLost: () => void,
    marks?: Marks,
  ) {
    this.#observer = observer;
    this.#marks = marks;
    this.#deadline = new Deadline(
      settings.deadlineMs,
      ({ batch }) => batch.isSettled,
      (call) => this.#failed(call, 'deadline'),
    );
    this.#routes = new ServerRoutes(
      observer,
      (route) => this.#probe(route),
      () => this.#answersAgain(),
    );
    const ready = () => {
      marks?.ready();
      this.#routes.probeSoon();
      this.#answersAgain();
    };
    const lost = () => {
      marks?.lost();
      connectionLost();
    };
    this.#link = openConnection(settings, observer, { ready, lost });
    marks?.attach(this.#link, observer);
    const { client, groupOf, tagOf, inOneWrite } = this.#link;
    this.#batcher = new TurnBatcher(
      groupOf,
      (batch, group) => this.#send(batch, group),
      inOneWrite,
      () => this.#settlements.flush(),
    );
    this.#settlements = new PendingSettlements(
      {
        groupOf,
        problemOf: (group) => this.#problemOf(group),
        send: async (sent, group, markedMs) => {
          const settlements = sent.map(({ settlement }) => settlement);
          const nonces = sent.map(({ nonce }) => nonce);
          const options = { markedMs, nonces, clock: this.#clock, mark: marks?.of(group) };
          const settled = await sendSettlements(client, settlements, options);
          marks?.lookAt(settled);
          return settled;
        },
      },
      observer,
      () => this.#batcher.wake(),
    );
    this.#renewals = new RenewalLink(settings);
    this.slots = new Leases({
      groupOf,
      tagOf,
      send: (groups) => inOneWrite(() => this.#state(groups)),
      renew: (renewal) => this.#renewals.send(renewal, (answer) => this.slots.renewed(renewal, answer)),
    });
  }

  /** The Cluster slot of a key; the same for all keys elsewhere. */
  groupOf(key: string): number {
    return this.#link.groupOf(key);
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

  settle(settlement: Settlement): Awaitable<Settled> {
    if (isValidSettlement(settlement) && this.#isDecidable(settlement.charge)) {
      return this.#settlements.add(settlement);
    }
    this.#observer.settlementDropped('invalid');
    return { outcome: 'dropped', reason: 'invalid' };
  }

  async close(): Promise<void> {
    this.#batcher.flush();
    await this.#settlements.close();
    this.slots.flush();
    this.slots.close();
    this.#isClosed = true;
    this.#batcher.flush();
    for (const call of this.#deadline.pending()) this.#giveUp(call, 'closed');
    this.#deadline.close();
    this.#routes.close();
    this.#renewals.close();
    this.#link.close();
  }

  /** A server can be called again. */
  #answersAgain(): void {
    this.slots.renew();
    this.#settlements.sendAgain();
  }

  #isDecidable(charge: Charge): boolean {
    if (!isValidCharge(charge)) return false;
    const { groupOf } = this.#link;
    const { buckets } = charge;
    const group = groupOf(firstKey(charge));
    return buckets.length === 1 || buckets.every(({ key }) => groupOf(key) === group);
  }

  /** The denial of a charge for which this replica alone holds all slots, while the store answers. */
  #denyOwn({ buckets }: Charge): Decision | undefined {
    const denial = this.slots.denialOf(buckets);
    if (denial === undefined || this.#problemOf(this.#link.groupOf(buckets[0]?.key ?? '')) !== undefined) {
      return undefined;
    }
    this.#observer.deniedFromMemory();
    return denial;
  }

  /** Why calls of a group cannot be made. */
  #problemOf(
    group: number,
    route = this.#routes.find(this.#link.routeOf(group)),
  ): UncountedReason | undefined {
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
        this.#call({
          batch: new Batch(),
          route: this.#route(group, leases.stated[0]?.lease.key ?? ''),
          leases,
        });
      }
    }
  }

  #uncounted(charge: Charge, reason: UncountedReason): Decision {
    this.#observer.uncounted(reason, charge.cost);
    return { outcome: 'uncounted', reason };
  }

  #send(batch: Batch, group: number): void {
    const { charges, kind } = batch;
    const route = this.#route(group, charges[0] === undefined ? '' : firstKey(charges[0]));
    const reason = this.#problemOf(group, route);
    if (reason !== undefined) this.#giveUp({ batch, route }, reason);
    else
      this.#call({ batch, route, leases: kind === 'charge' ? this.slots.open(charges, group) : undefined });
  }

  /** Sends a batch, and settles it in every case. */
  #call(call: Call): void {
    const { batch, route, leases } = call;
    const { charges, kind } = batch;
    const { group } = route;
    const startMs = performance.now();
    const isCheckingLives = kind === 'charge' && this.#newWindows.areIn(charges, startMs);
    this.#deadline.watch(call);
    const [first] = kind === 'peek' ? charges : [];
    const aliveKey = first && this.slots.aliveKeyOf(firstKey(first), this.#link.groupOf(firstKey(first)));
    const clock = this.#clock;
    const unixMs = clock.nowMs();
    const mark = this.#marks?.of(group);
    const options = { isSpending: kind !== 'peek', isCheckingLives, leases, clock, unixMs, aliveKey, mark };
    sendCharges(this.#link.client, charges, options, (error, decisions) => {
      if (error !== undefined) {
        this.#unanswered(call, error.message);
      } else if (batch.isSettled) {
        this.#answeredLate(batch, decisions);
      } else {
        route.breaker.succeeded();
        this.#marks?.look(charges, decisions);
        if (leases !== undefined) this.slots.answered(charges, leases, decisions);
        const uncounted = this.#settle(batch, decisions, clock.hasMoved(unixMs));
        this.#observer.called(decisions.length, (performance.now() - startMs) * 1000, uncounted);
      }
    });
  }

  #unanswered(call: Call, message: string): void {
    const { batch } = call;
    if (batch.kind === 'charge' && mayHaveRun(message)) {
      this.#observer.unanswered(batch.charges.reduce((points, { cost }) => points + cost, 0));
    }
    if (!batch.isSettled) this.#failed(call, reasonOf(message), shownError(message));
  }

  /**
   * Returns how many charges the store could not decide.
   *
   * @param hasClockMoved whether calls name other periods now, so that it helps to repeat one that named the wrong ones
   */
  #settle(batch: Batch, decisions: readonly Decision[], hasClockMoved: boolean): number {
    const { charges, kind } = batch;
    let uncounted = 0;
    for (let index = 0; index < decisions.length; index++) {
      const decision = decisions[index];
      const charge = charges[index];
      if (decision?.outcome !== 'uncounted' || charge === undefined) continue;
      uncounted += 1;
      if (decision.reason === 'clock' && hasClockMoved) {
        batch.defer(index, kind === 'peek' ? this.peek(charge) : this.charge(charge));
      } else if (kind === 'charge') {
        this.#observer.uncounted(decision.reason, charge.cost, decision.problem);
      }
    }
    batch.settle(decisions);
    return uncounted;
  }

  #answeredLate({ charges, kind }: Batch, decisions: readonly Decision[]): void {
    if (kind !== 'charge') return;
    let points = 0;
    for (const [index, decision] of decisions.entries()) {
      const charge = charges[index];
      if (decision.outcome !== 'admitted' || charge === undefined) continue;
      points += charge.cost;
      this.#freeHeld(charge, decision);
    }
    if (points > 0) this.#observer.answeredLate(points);
  }

  /** Frees the slots that an admitted charge holds for a time. Nobody else can: its caller does not know that it was admitted. */
  #freeHeld(charge: Charge, { buckets: states, chargedAtUs }: Admitted): void {
    const { cost, heldMs } = charge;
    if (heldMs === undefined) return;
    const buckets = countedPart(charge, states).buckets.filter(isConcurrent);
    if (buckets.length === 0) return;
    const id = randomBytes(ID_BYTES).toString('base64url');
    this.#settlements.add({
      charge: { buckets, cost, heldMs },
      chargedAtUs,
      cost,
      refundsRequests: false,
      id,
    });
  }

  /** Handles a failed call. If that opens the route's breaker, other calls in progress on the route fail at once. */
  #failed(call: Call, reason: UncountedReason, problem?: string): void {
    const { route } = call;
    this.#giveUp(call, reason, problem);
    if (!isOfServer(reason)) return;
    route.breaker.failed(reason);
    const cause = route.breaker.reason;
    if (cause === undefined) return;
    for (const other of this.#deadline.pending()) if (other.route === route) this.#giveUp(other, cause);
  }

  #giveUp({ batch, leases }: Call, reason: UncountedReason, problem?: string): void {
    if (leases !== undefined) this.slots.lost(leases);
    if (batch.kind === 'charge') {
      for (const { cost } of batch.charges) this.#observer.uncounted(reason, cost, problem);
    } else if (problem !== undefined) this.#observer.uncounted(reason, 0, problem);
    batch.giveUp(reason);
  }

  /** @param key one of the group */
  #route(group: number, key: string): ServerRoute {
    return this.#routes.use(this.#link.routeOf(group), group, key);
  }

  /**
   * Charges a bucket of its own, which also detects a Redis that can be read but not written. What another program has put there
   * says nothing about Redis, which has just replaced it.
   */
  async #probe(route: ServerRoute): Promise<UncountedReason | undefined> {
    const { group, key } = route;
    const problem = this.#isClosed ? 'closed' : this.#link.problemOf(group);
    if (problem !== undefined) return problem;
    const batch = new Batch('probe');
    const answer = batch.add({ buckets: [trialBucket(`${key}:probe`)], cost: 1 });
    this.#call({ batch, route });
    const decision = await answer;
    return decision.outcome === 'uncounted' && isOfServer(decision.reason) ? decision.reason : undefined;
  }
}

/** Whether a failure says something about a whole server. The slot of a Cluster that is moved has servers that answer. */
function isOfServer(reason: UncountedReason): boolean {
  return reason !== 'redirected' && !isOfOneCharge(reason);
}

function firstKey(charge: Charge): string {
  return charge.buckets[0]?.key ?? '';
}
