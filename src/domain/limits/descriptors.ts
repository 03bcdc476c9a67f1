/** The limits that Envoy's rate limit service applies: a descriptor is a list of keys with values, and rules are nested in the same order. */

import { type Calendar, calendarOf, PERIOD_SECONDS, type PeriodRule } from './calendar.ts';

/**
 * A unit of time. A month has 30 days, as in envoyproxy/ratelimit. The store counts windows of up to 31 days, so a limit with a year counts
 * in years of the calendar.
 */
export const UNIT_SECONDS = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: PERIOD_SECONDS.year,
} as const;

export type UnitName = keyof typeof UNIT_SECONDS;

const YEAR: PeriodRule = { unit: 'year', timeZone: 'UTC', startsOn: 1 };

/** The periods in which a unit is counted; undefined if it is the length of a window. */
export function calendarOfUnit(unit: UnitName): Calendar | undefined {
  return unit === 'year' ? calendarOf(YEAR) : undefined;
}

/** The largest limit. The store counts up to one more, so that a request can be above every limit. */
export const MOST_REQUESTS = 1_999_999_999;

/** One key of a descriptor, and its value. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The limit of a rule, or the one that a request brings along. */
export interface DescriptorLimit {
  /** The rule, in metrics: `foo.bar_banned`. */
  readonly label: string;
  /** The same in the characters of a string in a header. */
  readonly headerName: string;
  /** The name by which other rules can replace it; empty without one. */
  readonly name: string;
  readonly unit: UnitName;
  readonly windowSeconds: number;
  /** Zero refuses every request. */
  readonly requestsPerUnit: number;
  /** A shadow limit refuses nothing. Limits in quota mode refuse together: when none of a request's has room. */
  readonly mode: 'enforced' | 'shadow' | 'quota';
  /** Whether hits that do not fit spend what is left: they are of work that is done already. */
  readonly spendsRest: boolean;
}

/** A label in the characters that a string of RFC 9651 can have without escapes. */
export function headerNameOf(label: string): string {
  return label.replaceAll(/[^ !#-[\]-~]/g, '?');
}

/** A rule of the file. */
export interface DescriptorRule {
  /** Undefined where the rule only leads to others. */
  readonly limit: DescriptorLimit | 'unlimited' | undefined;
  /** The names of limits that do not apply to a request that this rule applies to. */
  readonly replaces: readonly string[];
  /** In the place of the value, if all values that match share one count. */
  readonly sharedValue: string | undefined;
  /** What the proxy gets of a rule whose limit has room. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly below: DescriptorLevel;
}

/** The rules at one depth. An exact value wins over a wildcard, and a wildcard over a rule without a value. */
export class DescriptorLevel {
  readonly #exact = new Map<string, Map<string, DescriptorRule>>();
  /** The parts of a value are the texts before, between and after each `*`. */
  readonly #wildcards: { key: string; parts: readonly string[]; rule: DescriptorRule }[] = [];
  readonly #defaults = new Map<string, DescriptorRule>();

  /**
   * Adds a rule. Among wildcards, the first one that matches applies.
   *
   * @param value undefined for every value that no other rule names
   */
  add(key: string, value: string | undefined, rule: DescriptorRule): void {
    if (value === undefined) this.#defaults.set(key, rule);
    else if (value.includes('*')) this.#wildcards.push({ key, parts: value.split('*'), rule });
    else this.#exact.set(key, (this.#exact.get(key) ?? new Map()).set(value, rule));
  }

  find({ key, value }: Entry): DescriptorRule | undefined {
    return this.#exact.get(key)?.get(value) ?? this.#findWildcard(key, value) ?? this.#defaults.get(key);
  }

  #findWildcard(key: string, value: string): DescriptorRule | undefined {
    if (this.#wildcards.length === 0) return undefined;
    return this.#wildcards.find((one) => one.key === key && matches(one.parts, value))?.rule;
  }
}

/** Whether the parts occur in the value in their order, the first at its start and the last at its end. */
function matches(parts: readonly string[], value: string): boolean {
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  if (value.length < first.length + last.length || !value.startsWith(first) || !value.endsWith(last))
    return false;
  const middle = value.slice(first.length, value.length - last.length);
  let position = 0;
  for (const part of parts.slice(1, -1)) {
    const found = middle.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return true;
}

/** The rules of all files, by domain. */
export type DescriptorRules = ReadonlyMap<string, DescriptorLevel>;

/**
 * The rule at the depth of the descriptor, and the id of what is counted: the keys and values of the descriptor. No two descriptors
 * share an id. Undefined if no rule matches.
 */
export function findRule(rules: DescriptorLevel, entries: readonly Entry[]) {
  let level = rules;
  let rule: DescriptorRule | undefined;
  let id = '';
  for (const entry of entries) {
    rule = level.find(entry);
    if (rule === undefined) return undefined;
    id += idPart(entry.key, rule.sharedValue ?? entry.value, id === '');
    level = rule.below;
  }
  return rule && { rule, id };
}

/** What is counted of a descriptor that brings its own limit. */
export function idOf(entries: readonly Entry[]): string {
  return entries.reduce((id, { key, value }) => id + idPart(key, value, id === ''), '');
}

function idPart(key: string, value: string, isFirst: boolean): string {
  return `${isFirst ? '' : '~'}${escaped(key)}~${escaped(value)}`;
}

/** Keeps the separator unambiguous. */
function escaped(text: string): string {
  return text.includes('~') || text.includes('%') ? text.replaceAll('%', '%25').replaceAll('~', '%7E') : text;
}
