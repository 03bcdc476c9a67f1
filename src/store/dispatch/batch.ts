import type { LeaseCall } from '../in-flight/leases.ts';
import type { Charge, Decision, UncountedReason } from '../store.ts';

/** Charges that share one script call, and the promises of their decisions. Settled once. */
export class Batch {
  readonly kind: 'charge' | 'peek' | 'probe';
  readonly charges: Charge[] = [];
  /** What the call states of this replica's slots, once it has been sent. */
  leases: LeaseCall | undefined = undefined;
  /** The number of buckets of all charges. */
  buckets = 0;
  readonly #resolves: ((decision: Decision) => void)[] = [];
  #isSettled = false;

  constructor(kind: 'charge' | 'peek' | 'probe' = 'charge') {
    this.kind = kind;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  add(charge: Charge): Promise<Decision> {
    this.charges.push(charge);
    this.buckets += charge.buckets.length;
    return new Promise((resolve) => this.#resolves.push(resolve));
  }

  /** `decisions` in the order of the charges. Lets go of the charges, because whoever watches the deadline keeps the batch until then. */
  settle(decisions: readonly Decision[]): void {
    this.#isSettled = true;
    this.charges.length = 0;
    for (const [index, resolve] of this.#resolves.splice(0).entries()) {
      resolve(decisions[index] ?? { outcome: 'uncounted', reason: 'error' });
    }
  }

  giveUp(reason: UncountedReason): void {
    const decision: Decision = { outcome: 'uncounted', reason };
    this.#isSettled = true;
    for (const resolve of this.#resolves) resolve(decision);
  }
}
