import { expect } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge, Decision } from '../../src/store/store.ts';
import type { ClockedStore } from './conformance.ts';
import { ExactLog } from './exact-log.ts';

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
/** Charges of one slot may share an entry, which expires with the last of them: the counter's only inexactness. */
const SLOTS_PER_WINDOW = 100;

export interface Step {
  /** Of a window. */
  readonly pause: number;
  readonly account: number;
  readonly cost: number;
  readonly isWithOrganization: boolean;
}

/** Sends a scenario's charges and holds every answer against exact logs of what was admitted. */
export class Walk {
  readonly #store: ClockedStore;
  readonly #prefix: string;
  readonly #windowSeconds: number;
  readonly #limits: { readonly account: number; readonly organization: number };
  readonly #logs = new Map<string, { readonly log: ExactLog; readonly limit: number }>();
  #nowUs = START_US;

  constructor(
    store: ClockedStore,
    prefix: string,
    plan: { windowSeconds: number; accountLimit: number; organizationLimit: number },
  ) {
    this.#store = store;
    this.#prefix = prefix;
    this.#windowSeconds = plan.windowSeconds;
    this.#limits = { account: plan.accountLimit, organization: plan.organizationLimit };
  }

  async take({ pause, account, cost, isWithOrganization }: Step): Promise<void> {
    this.#nowUs += Math.floor(pause * this.#windowUs);
    const id = `acct_${account}`;
    const windowSeconds = this.#windowSeconds;
    const accountKey = bucketKey(this.#prefix, 'org', 'account-read', id);
    const buckets = [{ key: accountKey, limit: this.#limits.account, windowSeconds }];
    if (isWithOrganization) {
      const key = bucketKey(this.#prefix, 'org', 'organization-read', 'org');
      buckets.push({ key, limit: this.#limits.organization, windowSeconds });
    }
    const charge = { buckets, cost };
    const foreseen = await this.#store.peek(charge, this.#nowUs);
    const decision = await this.#store.charge(charge, this.#nowUs);
    if (decision.outcome === 'uncounted') throw new Error(`uncounted: ${decision.reason}`);
    expect(foreseen.outcome).toBe(decision.outcome);
    if (decision.outcome === 'denied') expect(foreseen).toEqual(decision);

    const areAllRoomy = buckets.every(({ key, limit }) => this.#kept(key) + cost <= limit);
    if (areAllRoomy) expect(decision.outcome).toBe('admitted');
    for (const [index, { key, limit }] of buckets.entries()) {
      const entry = this.#logs.get(key) ?? { log: new ExactLog(), limit };
      this.#logs.set(key, entry);
      if (decision.outcome === 'admitted') entry.log.add(this.#nowUs, cost);
      await this.#expectState(charge, index, decision);
    }
  }

  expectStrict(): void {
    for (const { log, limit } of this.#logs.values()) {
      expect(log.worstWindow(this.#windowUs)).toBeLessThanOrEqual(limit);
    }
  }

  get #windowUs(): number {
    return this.#windowSeconds * US_PER_SECOND;
  }

  /** What the counter may still hold of a bucket: its window and one slot. */
  #kept(key: string): number {
    const slotUs = this.#windowUs / SLOTS_PER_WINDOW;
    return this.#logs.get(key)?.log.pointsBetween(this.#nowUs - this.#windowUs - slotUs, this.#nowUs) ?? 0;
  }

  async #expectState(charge: Charge, index: number, decision: Exclude<Decision, { outcome: 'uncounted' }>) {
    const bucket = charge.buckets[index];
    const state = decision.buckets[index];
    if (bucket === undefined || state === undefined) throw new Error('a bucket without its state');
    const { remaining, resetAfterUs, retryAfterUs } = state;
    const held =
      this.#logs.get(bucket.key)?.log.pointsBetween(this.#nowUs - this.#windowUs, this.#nowUs) ?? 0;
    expect(remaining).toBeLessThanOrEqual(bucket.limit - held);
    expect(remaining).toBeGreaterThanOrEqual(bucket.limit - this.#kept(bucket.key));

    const alone = { ...charge, buckets: [bucket] };
    const at = async (afterUs: number) => {
      const peeked = await this.#store.peek(alone, this.#nowUs + afterUs);
      return peeked.outcome === 'uncounted' ? undefined : { outcome: peeked.outcome, ...peeked.buckets[0] };
    };
    expect(await at(resetAfterUs)).toMatchObject({ remaining: bucket.limit });
    if (resetAfterUs > 0) expect((await at(resetAfterUs - 1))?.remaining).toBeLessThan(bucket.limit);
    if (decision.outcome === 'admitted' || retryAfterUs === 0) return;
    expect((await at(retryAfterUs))?.outcome).toBe('admitted');
    expect((await at(retryAfterUs - 1))?.outcome).toBe('denied');
  }
}
