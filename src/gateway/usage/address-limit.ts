import type { PublicClient } from '../../domain/caller.ts';
import { NEVER } from '../../domain/limits/limits.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import type { PayerBuckets } from '../../stages/buckets/buckets.ts';
import { policyText } from '../../stages/buckets/rate-limit-fields.ts';
import { charge } from '../../stages/charge.ts';
import type { Charged, Operation, RequestContext } from '../../stages/request-context.ts';
import type { CoalescedLog } from '../../store/coalesced-log.ts';
import { Generations } from '../../store/generations.ts';
import { MemoryStore } from '../../store/memory-store.ts';

/** Addresses remembered in each of two generations. Beyond that, those that asked longest ago are forgotten. */
const MOST_ADDRESSES = 10_000;

/** It has no row in the limits file, which may use the same name. */
const ROW: LimitRow = {
  name: 'usage',
  headerName: 'usage',
  scope: 'address',
  counts: 'requests',
  windowSeconds: 60,
  selection: { operations: ['usage'] },
  isContract: false,
};

const FOR_ALL = { source: 'default', plan: undefined, untilMs: NEVER } as const;

/** Counts how often each client address asks, in this process: a flood costs the store nothing, and is refused without it as well. */
export class AddressLimit {
  readonly #limit: number;
  readonly #store = new MemoryStore(undefined, new Generations<CoalescedLog>(MOST_ADDRESSES));

  /** @param limit requests per minute and address */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts one request of a client. */
  count(request: RequestContext, client: PublicClient, operation: Operation): Promise<Charged> {
    const item = { ...ROW, limit: this.#limit };
    const due: PayerBuckets = {
      buckets: [{ ...item, ...FOR_ALL, key: client.address, owner: client.address }],
      policyItems: [item],
      policy: policyText([item]),
      plan: undefined,
      unknownPlan: undefined,
      validUntilMs: FOR_ALL.untilMs,
    };
    const shared = { store: this.#store, buckets: { bucketsFor: () => due, fields: 'contract' as const } };
    return Promise.resolve(charge(request, client, { ...operation, cost: 1 }, shared));
  }
}
