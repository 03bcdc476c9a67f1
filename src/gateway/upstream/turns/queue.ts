/** Who waits for an upstream. What runs without a queue is in turns.ts. */
import { TRAFFICS, type Traffic } from '../../../domain/operation.ts';
import { Chain, Link, Ranked, Ranking } from './ranking.ts';
import type { Group, QueuedPayer, Visit } from './turns.ts';

/** How far one look into the queue goes. */
const MOST_STEPS = 1_000;

/** Where a request stands among all that wait, and among the requests of its payer. */
export interface VisitEntries {
  readonly arrival: Link<Visit>;
  readonly ofPayer: Link<Visit>;
}

/** The waiting requests of a payer, and its places among the payers that wait. */
export interface PayerEntries {
  readonly visits: Chain<Visit>;
  readonly byPresent: Ranked<QueuedPayer>;
  readonly byWaiting: Ranked<QueuedPayer>;
}

/** The payers of one kind of traffic that wait, by their requests at the upstream and by their requests that wait. */
interface Rankings {
  readonly byPresent: Ranking<QueuedPayer>;
  readonly byWaiting: Ranking<QueuedPayer>;
}

/** The requests that wait. Every operation takes constant time, however many payers there are. */
export class Queue {
  readonly #arrivals = new Chain<Visit>();
  readonly #rankings: Readonly<Record<Traffic, Rankings>>;

  constructor() {
    const rankings = (): Rankings => ({ byPresent: new Ranking(), byWaiting: new Ranking() });
    this.#rankings = { caller: rankings(), public: rankings(), uncharged: rankings() };
  }

  /** The request that has waited for the longest time. */
  get oldest(): Visit | undefined {
    return this.#arrivals.first?.value;
  }

  /** The first requests of the payers that have waited for the longest time, among the oldest thousand requests. */
  oldestOfEach(most: number): readonly Visit[] {
    const found = new Map<QueuedPayer, Visit>();
    let link = this.#arrivals.first;
    for (let steps = 0; link !== undefined && found.size < most && steps < MOST_STEPS; steps++) {
      if (!found.has(link.value.payer)) found.set(link.value.payer, link.value);
      link = link.next;
    }
    return [...found.values()];
  }

  add(visit: Visit): void {
    const { payer } = visit;
    const entries = { arrival: new Link(visit), ofPayer: new Link(visit) };
    visit.entries = entries;
    payer.entries ??= { visits: new Chain(), byPresent: new Ranked(payer), byWaiting: new Ranked(payer) };
    payer.entries.visits.push(entries.ofPayer);
    this.#arrivals.push(entries.arrival);
    payer.waiting++;
    payer.group.waiting++;
    this.rank(payer);
  }

  remove({ payer, entries }: Visit): void {
    if (entries === undefined) return;
    payer.entries?.visits.remove(entries.ofPayer);
    this.#arrivals.remove(entries.arrival);
    payer.waiting--;
    payer.group.waiting--;
    this.rank(payer);
  }

  /** To be called when the number of a payer's requests has changed. */
  rank({ group, entries, present, waiting }: QueuedPayer): void {
    if (entries === undefined) return;
    const { byPresent, byWaiting } = this.#rankings[group.traffic];
    if (waiting > 0) {
      byPresent.put(entries.byPresent, present);
      byWaiting.put(entries.byWaiting, waiting);
    } else {
      byPresent.remove(entries.byPresent);
      byWaiting.remove(entries.byWaiting);
    }
  }

  /** The payer whose turn is next, of the groups that have a place. */
  first(groups: Readonly<Record<Traffic, Group>>): QueuedPayer | undefined {
    let best: QueuedPayer | undefined;
    for (const traffic of TRAFFICS) {
      if (!groups[traffic].hasPlace) continue;
      const payer = this.#rankings[traffic].byPresent.lowest?.value;
      if (payer !== undefined && (best === undefined || isBefore(payer, best))) best = payer;
    }
    return best;
  }

  /** The most requests of one payer that wait. */
  longest(traffic: Traffic): number {
    return this.#rankings[traffic].byWaiting.highest?.rank ?? 0;
  }

  /** The newest request of the payer with the most of them. */
  newestOfLongest(traffic: Traffic): Visit | undefined {
    return this.#rankings[traffic].byWaiting.highest?.value.entries?.visits.last?.value;
  }
}

/** Whether one payer has its turn before another. */
function isBefore(one: QueuedPayer, other: QueuedPayer): boolean {
  if (one.present !== other.present) return one.present < other.present;
  return (one.entries?.byPresent.order ?? 0) < (other.entries?.byPresent.order ?? 0);
}
