import type { Static } from 'typebox';
import type { BucketName, OverrideSection } from '../../../domain/buckets.ts';
import type { GivenLimit, Limits, OverrideMaps, Overrides } from '../../../domain/limits.ts';
import { networkOf } from '../../../domain/network.ts';
import { ConfigError } from '../../problem.ts';
import type { Finding } from '../../reader/check.ts';
import { parse } from '../../reader/parse.ts';
import { endOf } from '../../reader/until.ts';
import { limitsSchema, overridesSchema } from './schema.ts';

/** Parses limits.yaml. Throws a ConfigError with every problem. */
export function parseLimits(text: string, file: string): Limits {
  const parsed = parse(limitsSchema, text, file);
  const { limits, findings } = toLimits(parsed.value);
  if (findings.length > 0) throw new ConfigError(findings.map(parsed.place));
  return limits;
}

/** Parses an overrides file. Throws a ConfigError with every problem. */
export function parseOverrides(text: string, file: string): OverrideMaps {
  const parsed = parse(overridesSchema, text, file);
  const { overrides, findings } = toOverrides(parsed.value);
  if (findings.length > 0) throw new ConfigError(findings.map(parsed.place));
  return overrides;
}

function toLimits(file: Static<typeof limitsSchema>): {
  limits: Limits;
  findings: readonly Finding[];
} {
  const { overrides, findings } = toOverrides(file);
  const defaults = Object.entries(file.defaults).map(([bucket, value]) => [bucket, toOverride(value)]);
  const limits: Limits = {
    windowSeconds: file.windowSeconds,
    defaults: Object.fromEntries(defaults) as Record<BucketName, GivenLimit>,
    ...overrides,
  };
  return { limits, findings };
}

function toOverrides(file: Static<typeof overridesSchema>): {
  overrides: OverrideMaps;
  findings: readonly Finding[];
} {
  const findings: Finding[] = [];
  const read = (section: OverrideSection) =>
    new Map(
      Object.entries(file[section]).map(([id, entry]) => [
        id,
        entryOverrides(entry, [section, id], findings),
      ]),
    );
  findings.push(...Object.keys(file.addresses).flatMap(addressFindings));
  const overrides = {
    accounts: read('accounts'),
    organizations: read('organizations'),
    addresses: read('addresses'),
  };
  return { overrides, findings };
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

function toOverride(value: RawLimit, untilMs?: number): GivenLimit {
  const end = untilMs === undefined ? {} : { untilMs };
  if (value === 'none') return { limit: 'none', shadow: false, ...end };
  if (typeof value === 'number') return { limit: value, shadow: false, ...end };
  return { limit: value.limit, shadow: value.shadow, ...end };
}
