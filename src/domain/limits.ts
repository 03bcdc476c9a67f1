import { type BucketName, bucketNamed, type OverrideSection } from './buckets.ts';

/** A limit from a file: a default, or the override of one owner. */
export interface GivenLimit {
  /** Points per window; `none` where no such limit applies. Only Organizations may have none. */
  readonly limit: number | 'none';
  /** A shadow limit is counted and reported beside the enforced one, and refuses nothing. */
  readonly shadow: boolean;
  /** Unix time at which this override expires; undefined for never. */
  readonly untilMs?: number;
}

export type Overrides = Readonly<Partial<Record<BucketName, GivenLimit>>>;

/** The overrides of single owners, by id. */
export type OverrideMaps = Readonly<Record<OverrideSection, ReadonlyMap<string, Overrides>>>;

/** The limits of all buckets. Use `limitInForce` rather than reading an override directly, because it may have expired. */
export interface Limits extends OverrideMaps {
  readonly windowSeconds: number;
  readonly defaults: Readonly<Record<BucketName, GivenLimit>>;
}

/** Where a limit is set: in a file for all owners, in a file for this one, or while the gateways run. */
export type LimitSource = 'default' | 'override' | 'live';

/** The limits of one bucket of one owner. */
export interface LimitInForce {
  /** Points per window, above which requests are refused; undefined where no such limit applies. */
  readonly limit: number | undefined;
  readonly limitSource: LimitSource;
  /** The shadow limit beside it, if any. */
  readonly shadowLimit: number | undefined;
  readonly shadowSource: LimitSource;
  /** Unix time until which this is valid unless the limits change; infinite if nothing expires. */
  readonly untilMs: number;
}

/**
 * The limit of a bucket for the owner with this id. Persons have the defaults. A shadow
 * override leaves the default in force; a shadow default leaves nothing in force.
 */
export function limitInForce(limits: Limits, bucket: BucketName, id: string, nowMs: number): LimitInForce {
  const override = overridesOf(limits, bucket)?.get(id)?.[bucket];
  const untilMs = override?.untilMs ?? Number.POSITIVE_INFINITY;
  const byDefault = limits.defaults[bucket];
  if (override === undefined || untilMs <= nowMs) {
    return {
      limit: enforced(byDefault),
      limitSource: 'default',
      shadowLimit: tried(byDefault),
      shadowSource: 'default',
      untilMs: Number.POSITIVE_INFINITY,
    };
  }
  return {
    limit: enforced(override.shadow ? byDefault : override),
    limitSource: override.shadow ? 'default' : 'override',
    shadowLimit: tried(override),
    shadowSource: 'override',
    untilMs,
  };
}

function enforced({ limit, shadow }: GivenLimit): number | undefined {
  return shadow || limit === 'none' ? undefined : limit;
}

function tried({ limit, shadow }: GivenLimit): number | undefined {
  return shadow && limit !== 'none' ? limit : undefined;
}

function overridesOf(limits: Limits, bucket: BucketName): ReadonlyMap<string, Overrides> | undefined {
  const section = bucketNamed(bucket).scope.overrides;
  return section === undefined ? undefined : limits[section];
}
