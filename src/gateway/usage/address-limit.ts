import { LRUCache } from 'lru-cache';
import type { PublicClient } from '../../domain/caller.ts';
import { NEVER } from '../../domain/limits/limits.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import type { Refusal } from '../../domain/problems.ts';
import type { Buckets, PayerBuckets } from '../../stages/buckets/buckets.ts';
import { type PayerBucket, wholeBucket } from '../../stages/buckets/payer-bucket.ts';
import { policyText } from '../../stages/buckets/rate-limit-fields.ts';
import { charge } from '../../stages/charge.ts';
import type { Charged, Operation, RequestContext } from '../../stages/request-context.ts';
import type { CoalescedLog } from '../../store/coalesced-log.ts';
import { Generations } from '../../store/generations.ts';
import { MemoryStore } from '../../store/memory-store.ts';

/** Addresses remembered in each of two generations. Beyond that, those that asked longest ago are forgotten. */
const MOST_ADDRESSES = 10_000;

const REFUSALS_KEPT = 1_000;

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
  readonly #bucket: PayerBucket;
  readonly #policy: string;
  readonly #fields: Buckets['fields'];
  readonly #lastRefusals: Buckets['lastRefusals'] = new LRUCache({ max: REFUSALS_KEPT });
  readonly #store = new MemoryStore(undefined, new Generations<CoalescedLog>(MOST_ADDRESSES));

  /** @param limit requests per minute and address */
  constructor(limit: number, fields: Buckets['fields']) {
    this.#fields = fields;
    this.#bucket = wholeBucket({ ...ROW, ...FOR_ALL, limit, key: '', owner: '' });
    this.#policy = policyText([this.#bucket]);
  }

  /** Counts one request of a client. */
  count(request: RequestContext, client: PublicClient, operation: Operation): Promise<Charged | Refusal> {
    const { address } = client;
    const due: PayerBuckets = {
      buckets: [{ ...this.#bucket, key: address, owner: address, alike: this.#bucket }],
      policyItems: [this.#bucket],
      policy: this.#policy,
      plan: undefined,
      unknownPlan: undefined,
      validUntilMs: FOR_ALL.untilMs,
    };
    const buckets = {
      bucketsFor: () => due,
      fields: this.#fields,
      lastRefusals: this.#lastRefusals,
    };
    return Promise.resolve(
      charge(request, client, { ...operation, cost: 1 }, { store: this.#store, buckets }),
    );
  }
}
