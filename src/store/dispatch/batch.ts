import { Later } from '../../domain/awaitable.ts';
import type { LeaseCall } from '../in-flight/leases.ts';
import type { Charge, Decision, UncountedReason } from '../store.ts';

/** Charges that share one script call, and their decisions, which come later. Settled once. */
export class Batch {
  readonly kind: 'charge' | 'peek' | 'probe';
  readonly charges: Charge[] = [];
  /** What the call states of this replica's slots, once it has been sent. */
  leases: LeaseCall | undefined = undefined;
  /** The number of buckets of all charges. */
  buckets = 0;
  readonly #decisions: Later<Decision>[] = [];
  #isSettled = false;

  constructor(kind: 'charge' | 'peek' | 'probe' = 'charge') {
    this.kind = kind;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  add(charge: Charge): Later<Decision> {
    this.charges.push(charge);
    this.buckets += charge.buckets.length;
    const decision = new Later<Decision>();
    this.#decisions.push(decision);
    return decision;
  }

  /** `decisions` in the order of the charges. Lets go of the charges, because whoever watches the deadline keeps the batch until then. */
  settle(decisions: readonly Decision[]): void {
    this.#isSettled = true;
    this.charges.length = 0;
    const waiting = this.#decisions.splice(0);
    for (let index = 0; index < waiting.length; index++)
      waiting[index]?.resolve(decisions[index] ?? { outcome: 'uncounted', reason: 'error' });
  }

  giveUp(reason: UncountedReason): void {
    this.#isSettled = true;
    for (const decision of this.#decisions.splice(0)) decision.resolve({ outcome: 'uncounted', reason });
  }
}
