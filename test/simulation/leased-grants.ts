/**
 * A model of leased grants, the design in docs/scale.md for an Organization that is too busy for one Redis slot. The gateway does
 * not implement it. Replicas take grants of points from the Organization's one bucket and spend them without a call.
 *
 * A grant counts in the bucket until a window after the end of its lease, whenever its points were spent. A replica that
 * settles a grant, with its next call or at the end of the lease, returns the points that are left and reports when it last
 * spent: the grant then counts until a window after that.
 */

export interface Design {
  /** Points per window. */
  readonly limit: number;
  readonly windowMs: number;
  /** At most a window. */
  readonly leaseMs: number;
  /** Points of a grant, and the highest cost of a request. */
  readonly grant: number;
  readonly settles: boolean;
}

/** What can go wrong between the replicas and the bucket. */
export interface Weather {
  /** From a replica to the bucket, and as long back. */
  readonly delayMs: number;
  /** Whether a settlement, counted from 0, is lost. */
  readonly isLost: (settlement: number) => boolean;
  /** Seconds that a replica's clock counts in a second of the bucket's: from `1 - drift` to `1 + drift`. */
  readonly rateOf: (replica: number) => number;
  readonly drift: number;
}

export const CALM: Weather = { delayMs: 0, isLost: () => false, rateOf: () => 1, drift: 0 };

export interface Arrival {
  readonly atMs: number;
  readonly replica: number;
  readonly cost: number;
}

export interface Admission {
  readonly atMs: number;
  readonly cost: number;
}

export interface Outcome {
  readonly admitted: readonly Admission[];
  /** Calls to the bucket, settlements at the end of a lease included. */
  readonly calls: number;
}

interface Grant {
  points: number;
  /** The grant leaves the bucket one window after this. */
  stampMs: number;
}

type Answer = { readonly grant: Grant } | { readonly againMs: number };

/** The Organization's one bucket: an exact log of grants, and the replicas that were refused one. */
class Bucket {
  #grants: Grant[] = [];
  readonly #turns = new Map<number, number>();
  readonly #design: Design;

  constructor(design: Design) {
    this.#design = design;
  }

  /** A grant, or the time at which one is free for this replica after those that were refused before it. */
  take(nowMs: number, replica: number): Answer {
    const { limit, windowMs, leaseMs, grant } = this.#design;
    this.#grants = this.#grants.filter(({ stampMs, points }) => stampMs + windowMs > nowMs && points > 0);
    let free = limit - this.#grants.reduce((total, { points }) => total + points, 0);
    this.#turns.delete(replica);
    if (free >= grant) {
      const granted = { points: grant, stampMs: nowMs + leaseMs };
      this.#grants.push(granted);
      return { grant: granted };
    }
    const ahead = [...this.#turns.values()].filter((turnMs) => turnMs > nowMs).length;
    let againMs = nowMs;
    for (const { points, stampMs } of this.#grants.toSorted((one, other) => one.stampMs - other.stampMs)) {
      if (free >= grant * (ahead + 1)) break;
      free += points;
      againMs = stampMs + windowMs;
    }
    this.#turns.set(replica, againMs);
    return { againMs };
  }
}

/** What a replica knows of its grant, by its own clock. */
interface Lease {
  readonly grant: Grant;
  /** When it was asked for, which is before the bucket decided. */
  readonly askedMs: number;
  /** When the bucket decided, by the bucket's clock, as its answer says. */
  readonly decidedMs: number;
  left: number;
  lastSpentMs: number;
}

interface Replica {
  lease?: Lease;
  /** When the answer to its last call arrives. */
  readyMs: number;
  /** It refuses without a call until then. */
  againMs: number;
}

/** Runs arrivals, in the order of their times, through replicas that hold leases. */
export function runLeasedGrants(design: Design, arrivals: readonly Arrival[], weather = CALM): Outcome {
  const { leaseMs, settles } = design;
  const { delayMs, drift, isLost, rateOf } = weather;
  const bucket = new Bucket(design);
  const replicas = new Map<number, Replica>();
  const admitted: Admission[] = [];
  let [calls, settlements] = [0, 0];

  /** How much time has passed by a replica's clock. */
  const elapsedMs = (id: number, fromMs: number, toMs: number) => (toMs - fromMs) * rateOf(id);
  /** The clock may be slow: the lease has to be over before it is so by the bucket's clock. */
  const isOver = (id: number, { askedMs }: Lease, nowMs: number) =>
    elapsedMs(id, askedMs, nowMs) > leaseMs * (1 - drift);

  const settle = (id: number, replica: Replica): void => {
    const { lease } = replica;
    delete replica.lease;
    if (lease === undefined || !settles || isLost(settlements++)) return;
    const { grant, askedMs, decidedMs, left, lastSpentMs } = lease;
    grant.points -= left;
    const spentAfterMs = elapsedMs(id, askedMs, lastSpentMs) / (1 - drift);
    grant.stampMs = Math.min(grant.stampMs, decidedMs + spentAfterMs);
  };

  const spend = (id: number, { lease }: Replica, nowMs: number, cost: number): boolean => {
    if (lease === undefined || lease.left < cost || isOver(id, lease, nowMs)) return false;
    lease.left -= cost;
    lease.lastSpentMs = nowMs;
    admitted.push({ atMs: nowMs, cost });
    return true;
  };

  const endLeases = (nowMs: number): void => {
    if (!settles) return;
    for (const [id, replica] of replicas) {
      if (replica.lease === undefined || !isOver(id, replica.lease, nowMs)) continue;
      settle(id, replica);
      calls++;
    }
  };

  const ask = (id: number, replica: Replica, nowMs: number): void => {
    calls++;
    settle(id, replica);
    const decidedMs = nowMs + delayMs;
    replica.readyMs = decidedMs + delayMs;
    const answer = bucket.take(decidedMs, id);
    if ('againMs' in answer) replica.againMs = nowMs + (answer.againMs - decidedMs) / rateOf(id);
    else {
      const { grant } = answer;
      replica.lease = { grant, askedMs: nowMs, decidedMs, left: grant.points, lastSpentMs: nowMs };
    }
  };

  const waiting = [...arrivals];
  for (let index = 0; index < waiting.length; index++) {
    const next = waiting[index];
    if (next === undefined) break;
    const { atMs, replica: id, cost } = next;
    const replica = replicas.get(id) ?? { readyMs: 0, againMs: 0 };
    replicas.set(id, replica);
    endLeases(atMs);
    if (atMs < replica.readyMs) insert(waiting, index + 1, { ...next, atMs: replica.readyMs });
    else if (!spend(id, replica, atMs, cost) && atMs >= replica.againMs) {
      ask(id, replica, atMs);
      spend(id, replica, replica.readyMs, cost);
    }
  }
  return { admitted, calls };
}

/** Keeps the order of times, and of what has the same time. */
function insert(arrivals: Arrival[], from: number, one: Arrival): void {
  let at = from;
  while ((arrivals[at]?.atMs ?? Number.POSITIVE_INFINITY) <= one.atMs) at++;
  arrivals.splice(at, 0, one);
}
