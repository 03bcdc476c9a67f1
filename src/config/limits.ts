import type { Static } from 'typebox';
import type { limitsSchema, overridesSchema } from './limits-file.ts';
import type { Finding } from './reader/check.ts';
import { endOf } from './until.ts';

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

type Override = BucketLimit | NoLimit;

export type Overrides = Readonly<Partial<Record<BucketName, Override>>>;

/** The limits of all buckets. Ask `limitInForce` rather than reading an override directly: it may have ended. */
export interface Limits {
  readonly windowSeconds: number;
  readonly defaults: Readonly<Record<BucketName, Override>>;
  readonly accounts: ReadonlyMap<string, Overrides>;
  readonly organizations: ReadonlyMap<string, Overrides>;
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

/** limits.yaml as the gateway uses it, and what is wrong with it beyond its form. */
export function toLimits(file: Static<typeof limitsSchema>): {
  limits: Limits;
  findings: readonly Finding[];
} {
  const { accounts, organizations, findings } = toOverrides(file);
  const defaults = Object.entries(file.defaults).map(([bucket, value]) => [bucket, toOverride(value)]);
  const limits: Limits = {
    windowSeconds: file.windowSeconds,
    defaults: Object.fromEntries(defaults) as Record<BucketName, Override>,
    accounts,
    organizations,
  };
  return { limits, findings };
}

interface OverrideMaps {
  readonly accounts: ReadonlyMap<string, Overrides>;
  readonly organizations: ReadonlyMap<string, Overrides>;
  readonly findings: readonly Finding[];
}

/** The overrides of one file, by id. */
export function toOverrides(file: Static<typeof overridesSchema>): OverrideMaps {
  const findings: Finding[] = [];
  const read = (section: 'accounts' | 'organizations') =>
    new Map(
      Object.entries(file[section]).map(([id, entry]) => [
        id,
        entryOverrides(entry, [section, id], findings),
      ]),
    );
  return { accounts: read('accounts'), organizations: read('organizations'), findings };
}

type RawLimit = number | 'none' | { limit: number; shadow: boolean; until?: string };

type RawEntry = Readonly<Partial<Record<BucketName, RawLimit>>> & { readonly until?: string };

function entryOverrides(entry: RawEntry, path: readonly string[], findings: Finding[]): Overrides {
  const { until, ...buckets } = entry;
  const untilMs = endMs(until, [...path, 'until'], findings);
  const overrides = Object.entries(buckets).map(([bucket, value]) => {
    const own =
      typeof value === 'object' ? endMs(value.until, [...path, bucket, 'until'], findings) : undefined;
    return [bucket, toOverride(value, own ?? untilMs)];
  });
  return Object.fromEntries(overrides);
}

function endMs(until: string | undefined, path: readonly string[], findings: Finding[]): number | undefined {
  if (until === undefined) return undefined;
  const ms = endOf(until);
  if (ms === undefined) findings.push({ path, message: `"${until}" is no date of the calendar` });
  return ms;
}

function toOverride(value: RawLimit, untilMs?: number): Override {
  const end = untilMs === undefined ? {} : { untilMs };
  if (value === 'none') return { limit: 'none', ...end };
  if (typeof value === 'number') return { limit: value, shadow: false, ...end };
  return { limit: value.limit, shadow: value.shadow, ...end };
}
