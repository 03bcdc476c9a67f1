import type { FieldErrors } from '../../domain/field-errors.ts';
import { readJson } from './json-text.ts';

/** A validation error within a value. An empty path refers to the whole value. */
export interface Issue {
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * A compiled schema. Returns undefined for a valid value. Runs in linear time, and returns TOO_COMPLEX if the schema would
 * take longer.
 *
 * @param bytes the size of the value as sent. Default: the largest possible parameter
 */
export type Check = (value: unknown, bytes?: number) => readonly Issue[] | undefined;

/** The result for a value that would take too long to validate. */
export const TOO_COMPLEX: readonly Issue[] = [
  { path: [], message: 'is too deeply nested or too complex to be validated' },
];

/** The rules for the value of a parameter. */
export interface ValueRule {
  readonly name: string;
  readonly shape: Shape;
  readonly check: Check;
}

/**
 * Validates the value of a text. If the schema allows both text and a number, either interpretation may match.
 *
 * @param single the text of a list, which may be a single value if the schema allows both
 */
export function checkValue(rule: ValueRule, tree: RawValue, errors: FieldErrors, single?: RawValue): void {
  const issues = issuesOf(rule, tree);
  if (issues === undefined) return;
  const maybeSingle = single !== undefined && rule.shape.types.size > 1;
  if (maybeSingle && issuesOf(rule, single) === undefined) return;
  addIssues(rule.name, issues, errors);
}

function issuesOf({ check, shape }: ValueRule, tree: RawValue): readonly Issue[] | undefined {
  const issues = check(readValue(tree, shape, false));
  if (issues === undefined || check(readValue(tree, shape, true)) === undefined) return undefined;
  return issues;
}

/** Validates a value that is JSON text. */
export function checkJson(rule: ValueRule, text: string, errors: FieldErrors): void {
  const read = readJson(Buffer.from(text));
  const issues = 'problem' in read ? [{ path: [], message: read.problem }] : rule.check(read.value);
  if (issues !== undefined) addIssues(rule.name, issues, errors);
}

/** Adds the issues as field errors. An issue of `filter` at `status`, `eq` is reported for `filter[status][eq]`. */
export function addIssues(name: string, issues: readonly Issue[], errors: FieldErrors): void {
  for (const { path, message } of issues) {
    errors.add(name + path.map((word) => `[${word}]`).join(''), message);
  }
}

/** An unparsed value from a URL or header: text, a list, or what names with brackets make. */
export type RawValue =
  | string
  | RawValue[]
  /** The properties of an object, or the items of a list by their index. */
  | { readonly isList: boolean; readonly members: Map<string | number, RawValue> };

/** The parts of a schema that are needed to parse a value from text. */
export interface Shape {
  /** JSON Schema types; empty if any type is allowed. */
  readonly types: ReadonlySet<string>;
  /** Shape of the list items; undefined if no list is allowed. */
  readonly items: Shape | undefined;
  /** Shapes of the first items, where they differ (`prefixItems`). */
  readonly prefix: readonly Shape[];
  readonly properties: ReadonlyMap<string, Shape>;
  /** Shape of other properties; undefined if nothing is said of them. */
  readonly others: Shape | undefined;
  /** Whether other properties are allowed. */
  readonly isOpen: boolean;
}

/** A number as in RFC 8259 section 6. Rejects `+5`, `0x10`, `1_000`, `007` and digits other than 0 to 9. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** An integer without `.0` or an exponent, because other parsers may read `1e2` as 1. */
const INTEGER = /^-?(?:0|[1-9]\d*)$/;

/**
 * Parses a value from text. A text that does not match the types of the shape stays text, and the schema then rejects it.
 *
 * @param prefersText whether to keep a value as text if the schema allows text
 */
function readValue(tree: RawValue, shape: Shape | undefined, prefersText: boolean): unknown {
  if (typeof tree === 'string') return shape ? scalarOf(tree, shape.types, prefersText) : tree;
  if (!('members' in tree)) return readItems(tree, shape, prefersText);
  if (tree.isList) return readItems(itemsOf(tree.members), shape, prefersText);
  const value: Record<string, unknown> = Object.create(null);
  for (const [key, member] of tree.members) {
    value[key] = readValue(member, shape?.properties.get(`${key}`) ?? shape?.others, prefersText);
  }
  return value;
}

/** In the order of their indexes. Items without an index have keys below zero, and follow as they came. */
function itemsOf(members: ReadonlyMap<string | number, RawValue>): RawValue[] {
  const placeOf = (key: string | number) => (Number(key) < 0 ? Number.MAX_SAFE_INTEGER : Number(key));
  return [...members].sort(([one], [other]) => placeOf(one) - placeOf(other)).map(([, item]) => item);
}

function readItems(items: readonly RawValue[], shape: Shape | undefined, prefersText: boolean) {
  return items.map((item, index) => readValue(item, shape?.prefix[index] ?? shape?.items, prefersText));
}

function scalarOf(text: string, types: ReadonlySet<string>, prefersText: boolean): unknown {
  if (types.size === 0 || (prefersText && types.has('string'))) return text;
  if (types.has('number') ? NUMBER.test(text) : types.has('integer') && INTEGER.test(text))
    return Number(text);
  if (types.has('boolean')) {
    if (text === 'true') return true;
    if (text === 'false') return false;
  }
  return text;
}
