import type { Static } from 'typebox';
import type { limitsSchema } from './limits-schema.ts';

/** The name of a bucket, in the store and, save the person buckets, in the RateLimit headers. */
export type BucketName = keyof Static<typeof limitsSchema>['defaults'];

/** What one bucket holds, for one Account, Organization or Person. */
export interface BucketLimit {
  /** Points per window. */
  readonly limit: number;
  /** A shadow bucket counts, and reports what it would have refused, but refuses nothing. */
  readonly shadow: boolean;
  /** Unix time at which this override ends; it never does where this is missing. */
  readonly untilMs?: number;
}

/** No such limit applies. Only Organizations may have none. */
interface NoLimit {
  readonly limit: 'none';
  readonly untilMs?: number;
}

export type Override = BucketLimit | NoLimit;

export type Overrides = Readonly<Partial<Record<BucketName, Override>>>;

/** What single Accounts and Organizations have in place of the defaults, by id. */
export interface OverrideMaps {
  readonly accounts: ReadonlyMap<string, Overrides>;
  readonly organizations: ReadonlyMap<string, Overrides>;
}

/** The limits of all buckets. Ask `limitInForce` rather than reading an override directly: it may have ended. */
export interface Limits extends OverrideMaps {
  readonly windowSeconds: number;
  readonly defaults: Readonly<Record<BucketName, Override>>;
}

/**
 * The limit of a bucket for the Account, Organization or Person with this id; undefined where no such limit applies.
 * Persons have the defaults.
 */
export function limitInForce(
  limits: Limits,
  bucket: BucketName,
  id: string,
  nowMs: number,
): BucketLimit | undefined {
  const override = overridesOf(limits, bucket)?.get(id)?.[bucket];
  const isOver = override?.untilMs !== undefined && override.untilMs <= nowMs;
  const inForce = override === undefined || isOver ? limits.defaults[bucket] : override;
  return hasLimit(inForce) ? inForce : undefined;
}

function hasLimit(override: Override): override is BucketLimit {
  return override.limit !== 'none';
}

function overridesOf(limits: Limits, bucket: BucketName): ReadonlyMap<string, Overrides> | undefined {
  if (bucket.startsWith('account-')) return limits.accounts;
  return bucket.startsWith('organization-') ? limits.organizations : undefined;
}
