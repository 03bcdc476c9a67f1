/** The counter for use inside another program: `import { createStore } from '<package>'`. */

import { bucketKey } from './keys.ts';
import { openStore } from './open-store.ts';
import { type BucketCharge, type Charge, type Decision, isValidCharge } from './store.ts';

export type { BucketState, Decision, UncountedReason } from './store.ts';

/** A limit of one owner, such as 100 points an hour for the tenant `acme`. */
export interface Limit extends Pick<BucketCharge, 'limit' | 'windowSeconds' | 'cost' | 'shadow'> {
  /** What the limit counts: the points that charges cost (the default), or the charges. */
  readonly counts?: 'points' | 'requests';
  /** What the limit is called. Two limits with the same name and owner are the same bucket. */
  readonly name: string;
  /** Whose limit it is: a tenant, a user, an address. */
  readonly owner: string;
}

export interface Spending {
  /** All of them must have room, or nothing is spent. At most 32. */
  readonly limits: readonly Limit[];
  /** Points, a whole number of at least 1. Default: 1. */
  readonly cost?: number;
  /** Limits that are charged together share a slot of a Redis Cluster by this name. Default: the owner of the first limit. */
  readonly group?: string;
}

/** Counts points. Programs with the same Redis and `keyPrefix` share their counts. */
export interface Counter {
  /**
   * Spends the cost in every limit, or in none if one has no room. The decision is `admitted`, `denied`, or `uncounted` if Redis does
   * not answer within the deadline. Its `buckets` follow the order of the limits; their times are in microseconds.
   *
   * @throws RangeError if a number is out of range, a limit occurs twice, or a name, an owner or the group is not a text
   */
  charge(spending: Spending): Promise<Decision>;
  /** The decision that `charge` would make. Spends nothing. */
  peek(spending: Spending): Promise<Decision>;
  /** Closes the connections. Charges in progress are `uncounted`. */
  close(): Promise<void>;
}

/** The settings of `store` in weir.yaml that concern the counter. */
export type CounterSettings = (
  | { readonly kind: 'memory' }
  | (Remote & { readonly kind: 'redis'; readonly url: string })
  | (Remote & { readonly kind: 'sentinel'; readonly sentinels: readonly string[]; readonly name: string })
  | (Remote & { readonly kind: 'cluster'; readonly nodes: readonly string[] })
) & {
  /** Letters, digits, `.`, `_` or `-`. Default: `weir`, which is also the gateway's. */
  readonly keyPrefix?: string;
};

interface Remote {
  /** How long a decision may take. Default: 25. */
  readonly deadlineMs?: number;
  readonly username?: string;
  readonly password?: string;
  /** Files in PEM. `{}` uses TLS with the authorities of the system. */
  readonly tls?: {
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly serverName?: string;
  };
}

/** The gateway's default, and its longest. */
const DEADLINE_MS = 25;
const MOST_DEADLINE_MS = 60_000;

const KINDS = ['memory', 'redis', 'sentinel', 'cluster'];

/**
 * Opens the counter. Returns at once: charges are `uncounted` while Redis cannot be reached.
 *
 * @throws RangeError if a setting is out of range
 */
export function createStore(settings: CounterSettings = { kind: 'memory' }): Counter {
  const { keyPrefix = 'weir' } = settings;
  if (!/^[A-Za-z0-9._-]+$/.test(keyPrefix))
    throw new RangeError('keyPrefix has a character that is not allowed');
  if (!KINDS.includes(settings.kind)) throw new RangeError(`kind must be one of ${KINDS.join(', ')}`);
  if (settings.kind === 'redis' && !(/^rediss?:\/\//i.test(settings.url) && URL.canParse(settings.url)))
    throw new RangeError('url must be a redis:// or rediss:// URL');
  const store = openStore(
    settings.kind === 'memory' ? settings : { ...settings, deadlineMs: deadlineOf(settings) },
  );
  return {
    charge: async (spending) => store.charge(chargeOf(spending, keyPrefix)),
    peek: async (spending) => store.peek(chargeOf(spending, keyPrefix)),
    close: () => store.close(),
  };
}

function deadlineOf({ deadlineMs = DEADLINE_MS }: Remote): number {
  if (Number.isInteger(deadlineMs) && deadlineMs >= 1 && deadlineMs <= MOST_DEADLINE_MS) return deadlineMs;
  throw new RangeError(`deadlineMs must be a whole number from 1 to ${MOST_DEADLINE_MS}`);
}

function chargeOf({ limits, cost = 1, group = limits[0]?.owner ?? '' }: Spending, prefix: string): Charge {
  // Without a check, all callers that pass undefined would share a bucket of this name.
  const texts = [group, ...limits.flatMap(({ name, owner }) => [name, owner])];
  if (!texts.every((text) => typeof text === 'string'))
    throw new RangeError('a name, an owner or the group is not a text');
  // Nothing else of what a program passes reaches the store, which trusts its charges.
  const buckets = limits.map(({ name, owner, limit, windowSeconds, counts = 'points', cost, shadow }) => ({
    key: bucketKey(prefix, group, encodeURIComponent(name), owner),
    limit,
    windowSeconds,
    counts,
    cost,
    shadow,
  }));
  const charge = { buckets, cost };
  const isKnown = buckets.every(({ counts }) => counts === 'points' || counts === 'requests');
  if (isKnown && isValidCharge(charge)) return charge;
  throw new RangeError(
    'the cost, a limit, a window or what it counts is out of range, or a limit occurs twice',
  );
}
