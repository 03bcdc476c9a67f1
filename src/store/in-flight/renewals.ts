import { pace } from '../../domain/pace.ts';
import { aliveKey } from '../keys.ts';

/** Buckets that one call states in addition to its charges. */
export const MOST_STATED = 128;

/** After so many statements in turn without a slot, a lease is forgotten. */
const MOST_IDLE_TURNS = 2;

/** Parts of a renewal's period over which the statements are spread. */
const PARTS = 10;

/** Fewer statements wait for the next sign of life, up to a second. */
const WORTH_A_CALL = 32;

/** Statements that are sent at once. */
const MOST_AT_ONCE = 1_024;

/** With more leases, one that holds nothing is forgotten although it has to be stated: their number stays bounded in a long outage. */
const MOST_UNSTATED = 10_000;

/** What this replica knows of its slots in one bucket. */
export interface Lease {
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
  /** Whether the next call of the group states it, if there is something to state. */
  isNoted: boolean;
  /** Whether it has nothing to hold or to state. It is kept for the next request of its owner, and forgotten when its turn comes. */
  isIdle: boolean;
  /** Statements in turn, in a row, at which nothing was held. */
  idleTurns: number;
  /** Where the lease is in the value of its key, as the last renewal has answered: see lua/renew.lua. 0 if that is not known. */
  place: number;
}

/** Leases whose keys may share a call, without those that are idle. */
interface Group {
  leases: number;
  readonly aliveKey: string;
}

/** What a call states about one bucket: see lua/charge.lua. */
export interface Statement {
  readonly lease: Lease;
  readonly generation: number;
  readonly held: number;
  readonly ended: number;
}

/** A call by which this replica stays alive, with statements of buckets for which no charge is in progress. */
export interface Renewal {
  readonly group: number;
  readonly replica: string;
  readonly aliveKey: string;
  readonly stated: readonly Statement[];
}

/** What the store answers to a renewal. */
export interface RenewalAnswer {
  /** Whether the store had counted this replica as alive until then. */
  readonly wasAlive: boolean;
  /** For each statement, in their order: see `Lease.place`. */
  readonly places: readonly number[];
}

/** How leases reach the store. */
export interface LeaseLink {
  /** Names the keys that may share a call. */
  groupOf(key: string): number;
  /** A text in the Cluster slot of a group. */
  tagOf(group: number): string;
  /** Sends what these groups have to state with the charges: calls `Leases.open` for each of them. */
  send(groups: ReadonlySet<number>): void;
  /** Sends a renewal apart from the charges, and later has `ended` called. */
  renew(renewal: Renewal): void;
}

/** What is done with leases whose turn has come. */
interface LeaseActions {
  /** Begins a generation. Undefined if it is stated with the charges. */
  state(lease: Lease): Statement | undefined;
  /** Forgets a lease that holds nothing. */
  drop(lease: Lease): void;
  /** The lease of a key, which is created if it has been forgotten. */
  enter(key: string): Lease;
}

/**
 * Keeps this replica alive in the store while it has leases, and states each of them in turn, spread over time. A lease does not cost a call
 * a second, because its slots count for as long as its replica is alive.
 */
export class Renewals {
  readonly #link: LeaseLink;
  readonly #replica: string;
  readonly #leases: ReadonlyMap<string, Lease>;
  readonly #actions: LeaseActions;
  readonly #groups = new Map<number, Group>();
  readonly #due = new Set<Lease>();
  #turn: Iterator<Lease, undefined>;
  /** Leases whose turn has come, and a fraction. */
  #turns = 0;
  #part = 0;
  /** Calls with statements that are not answered. */
  #unanswered = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(link: LeaseLink, replica: string, leases: ReadonlyMap<string, Lease>, actions: LeaseActions) {
    this.#link = link;
    this.#replica = replica;
    this.#leases = leases;
    this.#actions = actions;
    this.#turn = leases.values();
  }

  /** The key of the replicas that are alive, for a key of slots. */
  aliveKeyOf(key: string, group: number): string {
    return this.#groups.get(group)?.aliveKey ?? aliveKey(key, this.#link.tagOf(group));
  }

  /** The replica stays alive for it from now on. */
  used(lease: Lease): void {
    if (!lease.isIdle) return;
    lease.isIdle = false;
    if (!this.#isClosed)
      this.#timer ??= setInterval(() => this.#renewPart(), Math.ceil(pace.renewalMs / PARTS)).unref();
    // The first sign of life is soon.
    if (this.#groups.size === 0) this.#part = 0;
    const { key, group } = lease;
    const known = this.#groups.get(group);
    if (known === undefined) this.#groups.set(group, { leases: 1, aliveKey: this.aliveKeyOf(key, group) });
    else known.leases += 1;
  }

  /** It has nothing to hold or to state. */
  rested(lease: Lease): void {
    if (lease.isIdle) return;
    lease.isIdle = true;
    const group = this.#groups.get(lease.group);
    if (group !== undefined) group.leases -= 1;
    if (group?.leases === 0) this.#groups.delete(lease.group);
  }

  /** After it is no longer among the leases. */
  dropped(lease: Lease): void {
    this.#due.delete(lease);
    this.rested(lease);
    if (this.#leases.size === 0) this.#pause();
  }

  stateAll(): void {
    for (const lease of this.#leases.values()) if (!lease.isIdle) this.#due.add(lease);
  }

  /** Also states a lease that was forgotten with its last statement: the store may not have got it. */
  stateSoon({ key }: Lease): void {
    this.#due.add(this.#actions.enter(key));
  }

  isDue(lease: Lease): boolean {
    return this.#due.has(lease);
  }

  /**
   * Takes the result of a renewal. A replica that did not count as alive states all leases, because others may have dropped them.
   *
   * @param answer undefined if there was none
   */
  ended({ stated }: Renewal, answer: RenewalAnswer | undefined): void {
    if (stated.length > 0) this.#unanswered -= 1;
    for (const [index, { lease }] of stated.entries()) {
      if (answer === undefined) this.stateSoon(lease);
      else lease.place = answer.places[index] ?? 0;
    }
    if (answer?.wasAlive === false) this.stateAll();
  }

  close(): void {
    this.#isClosed = true;
    this.#pause();
  }

  #pause(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#part = 0;
  }

  /** A tenth of a renewal: the next statements, and a sign of life of each tenth group. */
  #renewPart(): void {
    this.#turns += (this.#leases.size * pace.renewalMs) / (PARTS * pace.statementsMs);
    for (; this.#turns >= 1; this.#turns--) this.#takeTurn();
    const isSending = this.#unanswered === 0 && (this.#part === 0 || this.#due.size >= WORTH_A_CALL);
    const renewed = isSending ? this.#sendDue() : undefined;
    for (const group of this.#groups.keys()) {
      if (group % PARTS === this.#part && !renewed?.has(group)) this.#renew(group, []);
    }
    this.#part = (this.#part + 1) % PARTS;
  }

  #takeTurn(): void {
    let { value: lease } = this.#turn.next();
    if (lease === undefined) {
      this.#turn = this.#leases.values();
      lease = this.#turn.next().value;
    }
    if (lease === undefined) return;
    if (lease.isIdle) {
      this.#actions.drop(lease);
      return;
    }
    lease.idleTurns = lease.pending > 0 || lease.held > 0 ? 0 : lease.idleTurns + 1;
    const isUnstated = this.#due.has(lease) && this.#leases.size <= MOST_UNSTATED;
    if (isUnstated || lease.idleTurns < MOST_IDLE_TURNS) this.#due.add(lease);
    else this.#actions.drop(lease);
  }

  /** @returns the groups that it has renewed */
  #sendDue(): ReadonlySet<number> {
    const calls = new Map<number, Statement[]>();
    let left = MOST_AT_ONCE;
    for (const lease of this.#due) {
      if (left === 0) break;
      left -= 1;
      this.#due.delete(lease);
      const statement = this.#actions.state(lease);
      if (statement === undefined) continue;
      const stated = calls.get(lease.group);
      if (stated === undefined) calls.set(lease.group, [statement]);
      else stated.push(statement);
    }
    for (const [group, stated] of calls) {
      for (let first = 0; first < stated.length; first += MOST_STATED)
        this.#renew(group, stated.slice(first, first + MOST_STATED));
    }
    return new Set(calls.keys());
  }

  #renew(group: number, stated: readonly Statement[]): void {
    if (stated.length > 0) this.#unanswered += 1;
    const { aliveKey: key = '' } = this.#groups.get(group) ?? {};
    this.#link.renew({ group, replica: this.#replica, aliveKey: key, stated });
  }
}
