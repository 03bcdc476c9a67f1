import type { Static } from 'typebox';
import { LATEST_MS } from '../../../domain/clock.ts';
import { startOfDayMs } from '../../../domain/limits/calendar.ts';
import type {
  AssignedPlan,
  GivenLimit,
  Limits,
  OverrideMaps,
  Overrides,
  RowLimits,
} from '../../../domain/limits/limits.ts';
import { CONTRACT_ROWS, type LimitRow } from '../../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../../domain/limits/scopes.ts';
import { DAY_MS } from '../../../domain/limits/time-zone.ts';
import { networkOf } from '../../../domain/network.ts';
import { type Advice, ConfigError } from '../../problem.ts';
import { parseAs } from '../../reader/parse-file.ts';
import type { Finding } from '../../reader/schema-check.ts';
import { isMapping } from '../../reader/schema-node.ts';
import { didYouMean } from '../../reader/value-messages.ts';
import { idFindings } from '../identities/parse-identities.ts';
import { withoutRepeats } from './equal-entries.ts';
import { limitsSchemaOf, overridesSchemaOf } from './limits-schema.ts';
import { furtherRowsOf, type LimitsContent, namedRows, namedRowsOf, rowsOf } from './named-rows.ts';

type OverridesFile = Static<ReturnType<typeof overridesSchemaOf>>;

/** What a file with overrides may refer to. */
export interface Named {
  readonly rows: readonly LimitRow[];
  readonly plans: readonly string[];
}

/** Only the contract's buckets. */
export const NOTHING: Named = { rows: [], plans: [] };

/** Parses limits.yaml. Throws a ConfigError with every problem. */
export function parseLimits(text: string, file: string): Limits {
  return parseShortened(text, (shortened) => {
    let unwritten: readonly string[] = [];
    let plans: readonly string[] | undefined;
    const schemaFor = (value: unknown) => {
      unwritten = unwrittenDefaults(value);
      plans = writtenPlans(value);
      return limitsSchemaOf(namedRows(value));
    };
    return parseAs(
      schemaFor,
      shortened,
      file,
      (limits, findings) => ({ ...toLimits(limits, findings), unwritten }),
      ({ limits = {}, ...overrides }, findings) => {
        furtherRowsOf(limits, findings);
        toOverrides({ ...NO_OVERRIDES, ...overrides }, plans, findings);
      },
    );
  });
}

const NO_OVERRIDES: OverridesFile = { accounts: {}, organizations: {}, addresses: {}, principals: {} };

/** The names of the plans, valid or not; undefined if the section is not a mapping. */
function writtenPlans(file: unknown): readonly string[] | undefined {
  const { plans } = isMapping(file) ? file : {};
  return isMapping(plans ?? {}) ? Object.keys(plans ?? {}) : undefined;
}

function unwrittenDefaults(file: unknown): readonly string[] {
  const written = isMapping(file) && isMapping(file.defaults) ? file.defaults : {};
  return CONTRACT_ROWS.map(({ name }) => name).filter((name) => !Object.hasOwn(written, name));
}

/** Parses an overrides file. Throws a ConfigError with every problem. */
export function parseOverrides(text: string, file: string, named = NOTHING): OverrideMaps {
  const schema = overridesSchemaOf(namedRowsOf(named.rows));
  return parseShortened(text, (shortened) =>
    parseAs(
      schema,
      shortened,
      file,
      (overrides, findings) => toOverrides(overrides, named.plans, findings),
      (overrides, findings) => toOverrides({ ...NO_OVERRIDES, ...overrides }, named.plans, findings),
    ),
  );
}

/** Parses each of several equal entries once. */
function parseShortened<T extends OverrideMaps>(text: string, parseText: (text: string) => T): T {
  const shortened = withoutRepeats(text);
  if (shortened === undefined) return parseText(text);
  try {
    const parsed = parseText(shortened.text);
    const maps = [...shortened.sections].map(([section, sameAs]) => [
      section,
      mapOf(parsed[section], sameAs),
    ]);
    return { ...parsed, ...Object.fromEntries(maps) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // The whole text has all problems, with their lines.
    return parseText(text);
  }
}

function mapOf(
  read: ReadonlyMap<string, Overrides>,
  sameAs: ReadonlyMap<string, string>,
): ReadonlyMap<string, Overrides> {
  const map = new Map<string, Overrides>();
  for (const [id, same] of sameAs) {
    const overrides = read.get(same);
    if (overrides === undefined) throw new TypeError(`the entry of ${same} was not read`);
    map.set(id, overrides);
  }
  return map;
}

/** A map for each section of overrides. */
export function bySection<T>(mapOf: (section: OverrideSection) => T): Readonly<Record<OverrideSection, T>> {
  const maps = OVERRIDE_SECTIONS.map((section) => [section, mapOf(section)]);
  return Object.fromEntries(maps) as Record<OverrideSection, T>;
}

function toLimits(file: LimitsContent, findings: Finding[]): Omit<Limits, 'unwritten'> {
  const { windowSeconds, defaults, limits, plans } = file;
  const further = Object.entries(limits).map(([name, { points, requests, concurrent, shadow = false }]) => {
    const limit = points ?? requests ?? concurrent ?? 'none';
    return [name, { limit, shadow: shadow && limit !== 'none' }] as const;
  });
  return {
    windowSeconds,
    rows: rowsOf(file, findings),
    defaults: { ...givenLimits(defaults), ...Object.fromEntries(further) },
    plans: new Map(Object.entries(plans).map(([name, given]) => [name, givenLimits(given)])),
    ...toOverrides(file, Object.keys(plans), findings),
  };
}

function givenLimits(values: Readonly<Record<string, RawLimit | undefined>>): RowLimits {
  const entries = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, toOverride(value)] as const],
  );
  return Object.fromEntries(entries);
}

/** @param plans the names of the plans; undefined where they are unknown */
function toOverrides(
  file: OverridesFile,
  plans: readonly string[] | undefined,
  findings: Finding[],
): OverrideMaps {
  const sections = ['accounts', 'organizations', 'principals'] as const;
  findings.push(...idFindings(file, sections), ...Object.keys(file.addresses).flatMap(addressFindings));
  return bySection((section) => {
    const entries = Object.entries(file[section]);
    return new Map(entries.map(([id, entry]) => [id, entryOverrides(entry, [section, id], plans, findings)]));
  });
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

function entryOverrides(
  entry: { readonly until?: string; readonly plan?: string; readonly periodStartsOn?: number },
  path: readonly string[],
  plans: readonly string[] | undefined,
  findings: Finding[],
): Overrides {
  const { until, plan, periodStartsOn, ...named } = entry;
  const values = named as Readonly<Record<string, RawLimit | undefined>>;
  const untilMs = endMs(until, [...path, 'until'], findings);
  const limits = Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const own =
      typeof value === 'object' ? endMs(value.until, [...path, name, 'until'], findings) : undefined;
    return [[name, toOverride(value, own ?? untilMs)] as const];
  });
  const start = periodStartsOn === undefined ? {} : { periodStartsOn };
  const overrides: Overrides = { limits: Object.fromEntries(limits), ...start };
  if (plan === undefined) return overrides;
  if (plans?.includes(plan) === false)
    findings.push({ path: [...path, 'plan'], ...unknownPlan(plan, plans) });
  return { ...overrides, plan: assigned(plan, untilMs) };
}

function assigned(name: string, untilMs: number | undefined): AssignedPlan {
  return untilMs === undefined ? { name } : { name, untilMs };
}

function unknownPlan(plan: string, plans: readonly string[]): Advice {
  const known = plans.length === 0 ? 'there are no plans' : `expected one of ${plans.join(', ')}`;
  return { message: `there is no plan "${plan}"`, hint: didYouMean(plan, plans) ?? known };
}

function endMs(until: string | undefined, path: readonly string[], findings: Finding[]): number | undefined {
  if (until === undefined) return undefined;
  const ms = endOf(until);
  if (ms === undefined) findings.push({ path, message: `"${until}" is not a calendar date` });
  return ms;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * When an override expires, in Unix milliseconds. A date without a time means the end of that day in UTC.
 * Undefined for a day that does not exist, such as 30 February. Replicas and programs read no later time than the last of the year 9999.
 */
function endOf(until: string): number | undefined {
  const day = until.slice(0, 10);
  const startMs = startOfDayMs(day);
  if (startMs === undefined) return undefined;
  if (DATE.test(until)) return Math.min(startMs + DAY_MS, LATEST_MS);
  const endMs = Date.parse(/(Z|[+-]\d{2}:\d{2})$/.test(until) ? until : `${until}Z`);
  return Number.isNaN(endMs) ? undefined : Math.min(endMs, LATEST_MS);
}

function toOverride(value: RawLimit, untilMs?: number): GivenLimit {
  const end = untilMs === undefined ? {} : { untilMs };
  if (value === 'none') return { limit: 'none', shadow: false, ...end };
  if (typeof value === 'number') return { limit: value, shadow: false, ...end };
  return { limit: value.limit, shadow: value.shadow, ...end };
}
