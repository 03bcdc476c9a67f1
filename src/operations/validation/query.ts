import type { FieldErrors } from '../../domain/field-errors.ts';
import { container, deepPath, insertDeep } from './deep-object.ts';
import { checkJson, checkValue, type RawValue, type ValueRule } from './parameter-value.ts';

export interface QueryRule extends ValueRule {
  /**
   * How to parse the parameter: a `single` value, a `repeated` parameter, a list with a `separator`, a `deep` object with brackets, or
   * JSON text.
   */
  readonly form:
    | { readonly kind: 'single' | 'repeated' | 'deep' | 'json' }
    | { readonly kind: 'separated'; readonly separator: string };
  readonly isRequired: boolean;
}

/** The rules for the query of an operation. */
export interface QueryRules {
  readonly byName: ReadonlyMap<string, QueryRule>;
  readonly required: readonly QueryRule[];
  /** Whether undeclared parameters are allowed. */
  readonly isOpen: boolean;
  /** Whether the query is not validated at all. */
  readonly isUnread?: boolean;
}

/** Names used by other APIs, which the contract rejects explicitly (section 4.1 rule 1). */
const OTHER_PAGE_SIZES = new Set(['pageSize', 'limit']);

/** Reports every unknown, duplicate, missing or invalid query parameter (contract section 4.1). */
export function checkQuery(rules: QueryRules, search: string, errors: FieldErrors): void {
  if (rules.isUnread || (search.length <= 1 && rules.required.length === 0)) return;
  const given = new Map<QueryRule, RawValue>();
  for (const pair of readQuery(search)) take(rules, pair, given, errors);
  for (const rule of rules.required) {
    if (!given.has(rule)) errors.add(rule.name, 'is missing');
  }
  for (const [rule, tree] of given) check(rule, tree, errors);
}

function take(
  rules: QueryRules,
  { name, value, problem }: QueryPair,
  given: Map<QueryRule, RawValue>,
  errors: FieldErrors,
): void {
  const rule = rules.byName.get(name) ?? deepRule(rules, name);
  if (problem !== undefined) errors.add(name, problem);
  else if (rule !== undefined) gather(rule, name, value, given, errors);
  else if (!rules.isOpen) errors.add(name, unknownParameter(rules, name));
}

/** `filter[status]` belongs to a declared object `filter`. */
function deepRule(rules: QueryRules, name: string): QueryRule | undefined {
  const bracketAt = name.indexOf('[');
  const rule = bracketAt === -1 ? undefined : rules.byName.get(name.slice(0, bracketAt));
  return rule?.form.kind === 'deep' ? rule : undefined;
}

function unknownParameter(rules: QueryRules, name: string): string {
  return OTHER_PAGE_SIZES.has(name) && rules.byName.has('page[size]')
    ? 'is not supported: the parameter is page[size]'
    : 'is not a parameter of this operation';
}

function gather(
  rule: QueryRule,
  name: string,
  value: string,
  given: Map<QueryRule, RawValue>,
  errors: FieldErrors,
): void {
  const before = given.get(rule);
  if (name !== rule.name) {
    gatherDeep(rule, name, value, given, errors);
  } else if (rule.form.kind === 'repeated') {
    if (Array.isArray(before)) before.push(value);
    else given.set(rule, [value]);
  } else if (before !== undefined) {
    // Parsers differ in which value they use, so the upstream could use one that was not validated.
    errors.add(name, 'is given more than once');
  } else {
    given.set(rule, value);
  }
}

function gatherDeep(
  rule: QueryRule,
  name: string,
  value: string,
  given: Map<QueryRule, RawValue>,
  errors: FieldErrors,
): void {
  const path = deepPath(name, rule.shape);
  if (path === undefined) {
    errors.add(name, 'is not a parameter of this operation');
    return;
  }
  const tree = given.get(rule) ?? container(path);
  if (insertDeep(tree, path, value)) given.set(rule, tree);
  else errors.add(name, 'is given more than once');
}

function check(rule: QueryRule, tree: RawValue, errors: FieldErrors): void {
  const { form } = rule;
  if (form.kind === 'json') checkJson(rule, String(tree), errors);
  else if (form.kind === 'separated') checkValue(rule, String(tree).split(form.separator), errors, tree);
  else checkValue(rule, tree, errors, Array.isArray(tree) && tree.length === 1 ? tree[0] : undefined);
}

/** One `name=value` of a query, decoded. */
interface QueryPair {
  readonly name: string;
  readonly value: string;
  /** Why parsers could interpret this pair differently. */
  readonly problem?: string;
}

/** Characters allowed unencoded in a query (RFC 3986 section 3.4), and others that clients commonly send. */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

/**
 * The pairs of a query in order, parsed as `application/x-www-form-urlencoded`. A plus sign is a space, brackets may be
 * percent-encoded, a name without `=` has an empty value, and empty pairs are skipped.
 *
 * @param search with its leading `?`
 */
function readQuery(search: string): readonly QueryPair[] {
  const pairs: QueryPair[] = [];
  for (const text of search.slice(1).split('&')) {
    if (text !== '') pairs.push(readPair(text));
  }
  return pairs;
}

function readPair(text: string): QueryPair {
  const equalsAt = text.indexOf('=');
  const rawName = equalsAt === -1 ? text : text.slice(0, equalsAt);
  const name = decoded(rawName);
  const value = equalsAt === -1 ? '' : decoded(text.slice(equalsAt + 1));
  if (name === undefined || value === undefined) {
    return { name: name ?? rawName, value: '', problem: 'has an escape that is not valid UTF-8' };
  }
  if (!VISIBLE_ASCII.test(text)) return { name, value, problem: 'has characters that need percent-encoding' };
  return { name, value };
}

function decoded(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
