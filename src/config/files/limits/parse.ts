import type { Static } from 'typebox';
import { type BucketName, OVERRIDE_SECTIONS, type OverrideSection } from '../../../domain/buckets.ts';
import { ID_FORMAT, isId } from '../../../domain/id.ts';
import type { GivenLimit, Limits, OverrideMaps, Overrides } from '../../../domain/limits.ts';
import { networkOf } from '../../../domain/network.ts';
import type { Finding } from '../../reader/check.ts';
import { parseAs } from '../../reader/parse.ts';
import { limitsSchema, overridesSchema } from './schema.ts';

/** Parses limits.yaml. Throws a ConfigError with every problem. */
export function parseLimits(text: string, file: string): Limits {
  return parseAs(limitsSchema, text, file, toLimits);
}

/** Parses an overrides file. Throws a ConfigError with every problem. */
export function parseOverrides(text: string, file: string): OverrideMaps {
  return parseAs(overridesSchema, text, file, toOverrides);
}

/** A map for each section of overrides. */
export function bySection<T>(mapOf: (section: OverrideSection) => T): Readonly<Record<OverrideSection, T>> {
  const maps = OVERRIDE_SECTIONS.map((section) => [section, mapOf(section)]);
  return Object.fromEntries(maps) as Record<OverrideSection, T>;
}

function toLimits(file: Static<typeof limitsSchema>, findings: Finding[]): Limits {
  const defaults = Object.entries(file.defaults).map(([bucket, value]) => [bucket, toOverride(value)]);
  return {
    windowSeconds: file.windowSeconds,
    defaults: Object.fromEntries(defaults) as Record<BucketName, GivenLimit>,
    ...toOverrides(file, findings),
  };
}

function toOverrides(file: Static<typeof overridesSchema>, findings: Finding[]): OverrideMaps {
  findings.push(...idFindings(file), ...Object.keys(file.addresses).flatMap(addressFindings));
  return bySection((section) => {
    const entries = Object.entries(file[section]);
    return new Map(entries.map(([id, entry]) => [id, entryOverrides(entry, [section, id], findings)]));
  });
}

function idFindings(file: Static<typeof overridesSchema>): readonly Finding[] {
  return (['accounts', 'organizations'] as const).flatMap((section) =>
    Object.keys(file[section])
      .filter((id) => !isId(id))
      .map((id) => ({ path: [section, id], message: `must be ${ID_FORMAT}` })),
  );
}

/** An address has to be written as its bucket is named, so that each has one override. */
function addressFindings(address: string): readonly Finding[] {
  const network = networkOf(address);
  if (network === address) return [];
  const path = ['addresses', address];
  const hint = network === undefined ? 'such as 203.0.113.7 or 2001:db8:0:1::/64' : `write "${network}"`;
  return [{ path, message: 'must be an IPv4 address or an IPv6 /64 network', hint }];
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
  if (ms === undefined) findings.push({ path, message: `"${until}" is not a calendar date` });
  return ms;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

/**
 * When an override expires, in Unix milliseconds. A date without a time means the end of that day in UTC.
 * Undefined for a day that does not exist, such as 30 February.
 */
function endOf(until: string): number | undefined {
  const day = until.slice(0, 10);
  const startMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(startMs) || new Date(startMs).toISOString().slice(0, 10) !== day) return undefined;
  if (DATE.test(until)) return startMs + DAY_MS;
  const endMs = Date.parse(/(Z|[+-]\d{2}:\d{2})$/.test(until) ? until : `${until}Z`);
  return Number.isNaN(endMs) ? undefined : endMs;
}

function toOverride(value: RawLimit, untilMs?: number): GivenLimit {
  const end = untilMs === undefined ? {} : { untilMs };
  if (value === 'none') return { limit: 'none', shadow: false, ...end };
  if (typeof value === 'number') return { limit: value, shadow: false, ...end };
  return { limit: value.limit, shadow: value.shadow, ...end };
}
