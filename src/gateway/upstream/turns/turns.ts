/**
 * Who may use an upstream next. Each request that is there has one of its places. A free place goes to the payer that has the fewest
 * (max-min fairness); within a payer, in order of arrival. Every event takes constant time, however many payers wait.
 */
import type { Traffic } from '../../../domain/operation.ts';
import type { PresentPayer, WaitingPayer } from '../../../observe/gateway-observer.ts';
import type { GroupLimits, Guest, TurnedAway, TurnSettings } from './guest.ts';
import { type PayerEntries, Queue, type VisitEntries } from './queue.ts';

/** How many payers of a group one look at those that are present reads. */
const MOST_LOOKED_AT = 5_000;

/** The places at one upstream, and the requests that wait for one. */
export class Turns {
  readonly #connections: number;
  readonly #reservePercent: number;
  readonly #timeoutMs: number;
  readonly #maxTunnels: number;
  /** Most requests at the upstream that took a place that is not reserved. */
  readonly #maxOpen: number;
  readonly #groups: Readonly<Record<Traffic, Group>>;
  readonly #queue = new Queue();
  #limit: number;
  #present = 0;
  #waiting = 0;
  /** How many of the requests that are present took a place that is not reserved. */
  #open = 0;
  #tunnels = 0;
  /** Tunnels that are at the upstream. */
  #openTunnels = 0;
  /** Requests at the upstream whose response has begun. A lowered limit does not count them. */
  #answered = 0;
  /** How many of them took a place that is not reserved. */
  #answeredOpen = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: TurnSettings) {
    const { connections, maxWaiting, tunnelPercent } = settings;
    this.#connections = connections;
    this.#limit = connections;
    this.#reservePercent = settings.reservePercent;
    this.#maxOpen = openOf(connections, settings.reservePercent);
    this.#timeoutMs = settings.queueTimeoutMs;
    // Rounded down: below 100 %, tunnels leave a place to the requests of every share.
    const tunnelsOf = (places: number) => Math.floor((places * tunnelPercent) / 100);
    this.#maxTunnels = tunnelsOf(connections);
    const groupOf = (traffic: Traffic, percent: number, mayWait: boolean) => {
      const maxPresent = partOf(connections, percent);
      const maxMayWait = mayWait ? partOf(maxWaiting, percent) : 0;
      return new Group(traffic, {
        percent,
        maxPresent,
        maxWaiting: maxMayWait,
        maxTunnels: tunnelsOf(maxPresent),
      });
    };
    this.#groups = {
      caller: groupOf('caller', 100, true),
      public: groupOf('public', settings.publicPercent, true),
      uncharged: groupOf('uncharged', settings.unauthenticatedPercent, false),
    };
  }

  /** How many requests are at the upstream. */
  get present(): number {
    return this.#present;
  }

  /** How many of them have no response yet, as far as `noteAnswered` was called. */
  get unanswered(): number {
    return this.#present - this.#answered;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Most requests at the upstream at once, as set by `limitTo`. */
  get limit(): number {
    return this.#limit;
  }

  /** The payers whose requests have waited for the longest time, the longest first. */
  waitingPayers(most: number, nowMs = performance.now()): readonly WaitingPayer[] {
    return this.#queue.oldestOfEach(most).map(({ payer, sinceMs }) => ({
      traffic: payer.group.traffic,
      id: payer.id,
      present: payer.present,
      waiting: payer.waiting,
      longestMs: Math.max(0, nowMs - sinceMs),
    }));
  }

  /** The payers that have the most places, among the oldest of each group. */
  presentPayers(most: number): readonly PresentPayer[] {
    const all = Object.values(this.#groups).flatMap((group) => group.presentPayers(MOST_LOOKED_AT));
    return all.sort((one, other) => other.present - one.present).slice(0, most);
  }

  /** Lowers or raises the number of places; `connections` is the most. Requests that are at the upstream stay there. */
  limitTo(limit: number): void {
    this.#limit = Math.max(1, Math.min(this.#connections, Math.floor(limit)));
    this.#groups.public.limitTo(this.#limit);
    this.#groups.uncharged.limitTo(this.#limit);
    this.#admit();
  }

  /** False if such a request would be turned away at once, because too many wait. */
  hasRoomFor(traffic: Traffic, payerId: string): boolean {
    const group = this.#groups[traffic];
    return this.#hasRoom(group, group.find(payerId));
  }

  /** False when tunnels use their whole share of the places, or when tunnels of this traffic use the share of this traffic. */
  hasRoomForTunnel(traffic: Traffic = 'caller'): boolean {
    const { tunnels, limits } = this.#groups[traffic];
    return this.#tunnels < this.#maxTunnels && (traffic === 'caller' || tunnels < limits.maxTunnels);
  }

  /**
   * Asks for a place. A request that gets one at once is `present`; for one that waits, its guest is called later. If too many wait, the
   * newest request of the payer with the most of them is turned away.
   *
   * @returns undefined if that would be this request
   */
  enter(guest: Guest, nowMs = performance.now()): Visit | undefined {
    const group = this.#groups[guest.traffic];
    const known = group.find(guest.payerId);
    if (!this.#hasRoom(group, known)) return undefined;
    const payer = known ?? group.add(guest.payerId);
    const { waiting } = payer;
    if (isIdle(payer)) group.payers++;
    const visit = new Visit(guest, payer, nowMs);
    if (guest.isTunnel) this.#count(group, 1);
    // Those that wait already may not have the free places.
    if (waiting === 0 && group.hasPlace && this.#isAdmissible(payer.present)) {
      this.#place(visit);
      // It brings a place along, which may leave one for those that wait.
      if (guest.isTunnel) this.#admit();
    } else this.#wait(visit, group);
    return visit;
  }

  /** Counts a request out that was answered, has failed or has left the queue. A second call changes nothing. */
  leave(visit: Visit): void {
    if (visit.state === 'over') return;
    this.#remove(visit);
    this.#admit();
  }

  /**
   * Takes a request off a lowered limit, because its response has begun. The response may be long, and gives no sample any more that could
   * raise the limit, so requests would wait in vain. `connections` still counts it.
   */
  noteAnswered(visit: Visit): void {
    if (visit.state !== 'present' || visit.isAnswered || visit.guest.isTunnel) return;
    visit.isAnswered = true;
    this.#countAnswered(visit, 1);
    this.#admit();
  }

  /** Whether a request that waits would get the place of this one. */
  isAwaited(visit: Visit): boolean {
    if (this.#waiting === 0 || visit.state !== 'present') return false;
    this.#countPresent(visit, -1);
    const payer = this.#queue.first(this.#groups);
    const isAwaited = payer !== undefined && this.#isAdmissible(payer.present);
    this.#countPresent(visit, 1);
    return isAwaited;
  }

  /** Turns away what has waited for too long. */
  expire(nowMs: number): void {
    for (;;) {
      const { oldest } = this.#queue;
      if (oldest === undefined || nowMs - oldest.sinceMs < this.#timeoutMs) break;
      this.#turnAway(oldest, 'late');
    }
    this.#admit();
  }

  /** Turns away everything that waits. */
  close(): void {
    clearTimeout(this.#timer);
    for (let next = this.#queue.oldest; next !== undefined; next = this.#queue.oldest)
      this.#turnAway(next, 'closed');
  }

  /**
   * Whether a request may have a place now, or may wait for one.
   *
   * @param payer undefined if it has no other request
   */
  #hasRoom(group: Group, payer: QueuedPayer | undefined): boolean {
    const { maxPresent, maxWaiting } = group.limits;
    if (maxWaiting === 0) return group.present + group.waiting < maxPresent;
    const waiting = payer?.waiting ?? 0;
    if (group.waiting < maxWaiting || waiting + 1 < this.#queue.longest(group.traffic)) return true;
    return waiting === 0 && group.hasPlace && this.#isAdmissible(payer?.present ?? 0);
  }

  #wait(visit: Visit, group: Group): void {
    const { maxWaiting } = group.limits;
    const isFull = maxWaiting > 0 && group.waiting >= maxWaiting;
    const crowded = isFull ? this.#queue.newestOfLongest(group.traffic) : undefined;
    this.#queue.add(visit);
    this.#waiting++;
    if (crowded !== undefined) this.#turnAway(crowded, 'crowded');
    this.#setTimer(visit.sinceMs);
  }

  #turnAway(visit: Visit, reason: TurnedAway): void {
    this.#remove(visit);
    visit.guest.onTurnedAway(reason);
  }

  #remove(visit: Visit): void {
    const { payer, guest } = visit;
    const { group } = payer;
    if (visit.state === 'present') {
      this.#countPresent(visit, -1);
      if (payer.waiting > 0) this.#queue.rank(payer);
    } else this.#unqueue(visit);
    visit.state = 'over';
    if (guest.isTunnel) this.#count(group, -1);
    if (!isIdle(payer)) return;
    group.payers--;
    group.forgetIdle();
  }

  #countPresent(visit: Visit, change: 1 | -1): void {
    const { payer, isReserved, guest } = visit;
    if (visit.isAnswered) this.#countAnswered(visit, change);
    this.#present += change;
    if (guest.isTunnel) {
      this.#openTunnels += change;
      payer.group.openTunnels += change;
    }
    if (!isReserved) this.#open += change;
    payer.group.present += change;
    payer.present += change;
  }

  #countAnswered({ payer, isReserved }: Visit, change: 1 | -1): void {
    this.#answered += change;
    if (!isReserved) this.#answeredOpen += change;
    payer.group.answered += change;
  }

  #unqueue(visit: Visit): void {
    this.#queue.remove(visit);
    this.#waiting--;
  }

  #count(group: Group, tunnels: 1 | -1): void {
    this.#tunnels += tunnels;
    group.tunnels += tunnels;
  }

  /** Gives away the free places. */
  #admit(): void {
    while (this.#waiting > 0) {
      const payer = this.#queue.first(this.#groups);
      const next = payer?.entries?.visits.first?.value;
      if (payer === undefined || next === undefined || !this.#isAdmissible(payer.present)) return;
      this.#unqueue(next);
      this.#place(next);
      next.guest.onTurn(performance.now() - next.sinceMs);
    }
  }

  /**
   * Whether a payer may have a place now, if it asks for one. Payers with more requests at the upstream may not, if it may not.
   *
   * @param present how many of its requests are at the upstream
   */
  #isAdmissible(present: number): boolean {
    const places = this.#places;
    const isFree = this.unanswered < places;
    if (isFree && this.#hasOpen(places)) return true;
    if (this.#present >= this.#connections) return false;
    // Requests that a lowered limit has left at the upstream do not use up the reserve.
    const reserved = this.unanswered - this.#unansweredOpen;
    if (!isFree && reserved >= places - openOf(places, this.#reservePercent)) return false;
    const { caller, public: addresses, uncharged } = this.#groups;
    // One more payer, because the next one may be new.
    const payers = caller.payers + addresses.payers + uncharged.payers + 1;
    return present < Math.max(1, Math.floor((places + this.#answered) / payers));
  }

  /** Whether one of the places that are not reserved is free. */
  #hasOpen(places: number): boolean {
    return this.#unansweredOpen < openOf(places, this.#reservePercent) && this.#open < this.#maxOpen;
  }

  get #unansweredOpen(): number {
    return this.#open - this.#answeredOpen;
  }

  /**
   * The places of requests that are not answered yet. However low the limit is, each Account may have one. Tunnels take none from the
   * requests: they are mostly silent.
   */
  get #places(): number {
    const needed = Math.max(this.#limit, this.#groups.caller.payers);
    return Math.min(this.#connections - this.#answered, needed + this.#openTunnels);
  }

  #place(visit: Visit): void {
    const { payer } = visit;
    visit.isReserved = !this.#hasOpen(this.#places);
    this.#countPresent(visit, 1);
    visit.state = 'present';
    if (payer.waiting > 0) this.#queue.rank(payer);
  }

  #setTimer(nowMs: number): void {
    const { oldest } = this.#queue;
    if (this.#timer !== undefined || oldest === undefined) return;
    const waitMs = Math.max(1, Math.ceil(oldest.sinceMs + this.#timeoutMs - nowMs));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const laterMs = performance.now();
      this.expire(laterMs);
      this.#setTimer(laterMs);
    }, waitMs).unref();
  }
}

/** One request, while it waits for an upstream or is there. */
export class Visit {
  readonly guest: Guest;
  readonly payer: QueuedPayer;
  readonly sinceMs: number;
  state: 'waiting' | 'present' | 'over' = 'waiting';
  /** Whether its place is one of those for payers below their fair share. */
  isReserved = false;
  /** Whether its response has begun, as far as `noteAnswered` was called. */
  isAnswered = false;
  /** Undefined if it has not waited. */
  entries: VisitEntries | undefined = undefined;

  constructor(guest: Guest, payer: QueuedPayer, sinceMs: number) {
    this.guest = guest;
    this.payer = payer;
    this.sinceMs = sinceMs;
  }
}

/** An Account or a client's address. */
export class QueuedPayer {
  readonly group: Group;
  readonly id: string;
  /** Its requests at the upstream. */
  present = 0;
  /** Its requests that wait. */
  waiting = 0;
  /** Undefined if none has waited. */
  entries: PayerEntries | undefined = undefined;

  constructor(group: Group, id: string) {
    this.group = group;
    this.id = id;
  }
}

/** Whether it has no request at the upstream and none that waits. */
function isIdle({ present, waiting }: QueuedPayer): boolean {
  return present === 0 && waiting === 0;
}

/** Idle payers that a group may know, besides as many as are not idle. */
const MOST_IDLE = 1_000;

/** The payers of one kind of traffic, which share a part of the places. */
export class Group {
  readonly traffic: Traffic;
  readonly limits: GroupLimits;
  /** Those that have requests. */
  payers = 0;
  /** With idle ones. They are not deleted one by one, because the map's old tables would stay in memory (docs/decisions/0011). */
  #known = new Map<string, QueuedPayer>();
  present = 0;
  waiting = 0;
  /** Tunnels of its requests, waiting ones included. */
  tunnels = 0;
  /** Its tunnels at the upstream. */
  openTunnels = 0;
  /** Its requests at the upstream whose response has begun. */
  answered = 0;
  /** Most of its requests at the upstream, without its tunnels and those that are answered. */
  #maxRequests: number;

  constructor(traffic: Traffic, limits: GroupLimits) {
    this.traffic = traffic;
    this.limits = limits;
    this.#maxRequests = limits.maxPresent;
  }

  /** Changes the number of places that it shares. */
  limitTo(places: number): void {
    this.#maxRequests = partOf(places, this.limits.percent);
  }

  find(id: string): QueuedPayer | undefined {
    return this.#known.get(id);
  }

  add(id: string): QueuedPayer {
    const payer = new QueuedPayer(this, id);
    this.#known.set(id, payer);
    return payer;
  }

  /** Forgets the idle payers once there are many. Takes constant time on average. */
  forgetIdle(): void {
    if (this.#known.size < MOST_IDLE + 2 * this.payers) return;
    const known = this.#known;
    this.#known = new Map();
    for (const payer of known.values()) if (!isIdle(payer)) this.#known.set(payer.id, payer);
  }

  /** Payers that have places, of its first ones. */
  presentPayers(mostLookedAt: number): readonly PresentPayer[] {
    const found: PresentPayer[] = [];
    let looks = 0;
    for (const payer of this.#known.values()) {
      if (isIdle(payer)) continue;
      if (++looks > mostLookedAt) break;
      const { id, present } = payer;
      if (present > 0) found.push({ traffic: this.traffic, id, present });
    }
    return found;
  }

  get hasPlace(): boolean {
    const { present, openTunnels, answered } = this;
    return present < this.limits.maxPresent && present - openTunnels - answered < this.#maxRequests;
  }
}

/** The places that are not reserved. A single place cannot be. */
function openOf(places: number, reservePercent: number): number {
  return places === 1 ? 1 : places - partOf(places, reservePercent);
}

/** A percentage, rounded down, and at least one. */
function partOf(whole: number, percent: number): number {
  return Math.max(1, Math.floor((whole * percent) / 100));
}
