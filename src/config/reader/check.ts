import { Check } from 'typebox/schema';
import { maskUrl } from './mask.ts';
import { described, expected, listed, nearest } from './messages.ts';
import { foreignSetting, impliedKind, isMapping, kindOf, type SchemaNode } from './schema-node.ts';

/** A problem whose file, line or variable has not been determined yet. */
export interface Finding {
  readonly path: readonly string[];
  readonly message: string;
  readonly hint?: string;
}

/**
 * Applies the defaults and reports everything that does not match the schema. If there are findings, do not use the value.
 *
 * TypeBox's own error list reports every variant of a union and cannot suggest a key. Here, a union of mappings is checked
 * only against the variant selected by `kind`, or by default.
 */
export function check(schema: SchemaNode, value: unknown): { value: unknown; findings: readonly Finding[] } {
  const findings: Finding[] = [];
  return { value: read(schema, value, [], findings), findings };
}

function read(schema: SchemaNode, given: unknown, path: readonly string[], findings: Finding[]): unknown {
  const value = given ?? schema.default;
  if (schema.anyOf !== undefined) return readUnion(schema, schema.anyOf, value, path, findings);
  if (schema.properties !== undefined) return readObject(schema, value, path, findings);
  if (schema.patternProperties !== undefined) return readRecord(schema, value, path, findings);
  if (schema.type === 'array') return readArray(schema, value, path, findings);
  if (!Check(schema, value)) findings.push({ ...mismatch(schema, value, path), ...urlHint(schema, value) });
  else if (schema.url && !isReadableUrl(String(value))) {
    findings.push({ ...mismatch(schema, value, path), hint: PERCENT_ENCODING });
  }
  return value;
}

function urlHint({ url, secret }: SchemaNode, value: unknown): { hint?: string } {
  return url && !secret && String(value).includes('@') ? { hint: NO_CREDENTIALS } : {};
}

const NO_CREDENTIALS = 'a user name or password is not allowed here';
const PERCENT_ENCODING = 'percent-encode special characters in a password, such as %23 for #';

function isReadableUrl(text: string): boolean {
  try {
    const { hostname, username, password } = new URL(text);
    decodeURIComponent(username + password);
    return hostname !== '';
  } catch {
    return false;
  }
}

function mismatch(schema: SchemaNode, value: unknown, path: readonly string[]): Finding {
  if (value === undefined || value === null) {
    return { path, message: 'is missing', hint: `expected ${expected(schema)}` };
  }
  return { path, message: `must be ${expected(schema)}, is ${described(value, schema)}` };
}

function readObject(
  schema: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): unknown {
  if (!isMapping(value)) {
    findings.push(mismatch(schema, value, path));
    return value;
  }
  const properties = schema.properties ?? {};
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(properties, key)) findings.push(unknownKey(key, properties, path));
  }
  const result: Record<string, unknown> = {};
  for (const [key, property] of Object.entries(properties)) {
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    const absent = given === undefined || given === null;
    if (absent && property.default === undefined && !schema.required?.includes(key)) continue;
    result[key] = read(property, given, [...path, key], findings);
  }
  return result;
}

function unknownKey(
  key: string,
  properties: Readonly<Record<string, SchemaNode>>,
  path: readonly string[],
): Finding {
  const known = Object.keys(properties);
  const renamed = known.find((name) => properties[name]?.formerly === key);
  if (renamed !== undefined) {
    return { path: [...path, key], message: `"${key}" has been renamed`, hint: `use "${renamed}"` };
  }
  const suggestion = nearest(key, known);
  const hint =
    suggestion === undefined ? `expected one of ${known.join(', ')}` : `did you mean "${suggestion}"?`;
  return { path: [...path, key], message: `unknown key "${maskUrl(key)}"`, hint };
}

function readRecord(
  schema: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): unknown {
  if (!isMapping(value)) {
    findings.push(mismatch(schema, value, path));
    return value;
  }
  const item = Object.values(schema.patternProperties ?? {})[0] ?? {};
  const entries = Object.entries(value).map(([key, one]) => {
    if (key === '') findings.push({ path: [...path, key], message: 'a key must not be empty' });
    return [key, read(item, one, [...path, key], findings)];
  });
  return Object.fromEntries(entries);
}

function readArray(
  schema: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): unknown {
  if (!Array.isArray(value)) {
    findings.push(mismatch(schema, value, path));
    return value;
  }
  const { items = {}, ...list } = schema;
  if (!Check(list, value)) findings.push(mismatch(schema, value, path));
  return value.map((one, index) => read(items, one, [...path, String(index)], findings));
}

function readUnion(
  schema: SchemaNode,
  variants: readonly SchemaNode[],
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): unknown {
  const mappings = variants.filter((variant) => variant.properties !== undefined);
  if (!isMapping(value) || mappings.length === 0) {
    const fits = variants.some((variant) => variant.properties === undefined && Check(variant, value));
    if (!fits) findings.push(mismatch(schema, value, path));
    return value;
  }
  const named = mappings.filter((variant) => kindOf(variant) !== undefined);
  const kind = value.kind ?? impliedKind(schema, value);
  const chosen = named.length === 0 ? mappings[0] : named.find((variant) => kindOf(variant) === kind);
  if (chosen !== undefined) return readObject(chosen, withKind(value, kindOf(chosen)), path, findings);
  findings.push({ path: [...path, 'kind'], ...kindProblem(value, named) });
  return value;
}

function withKind(value: Record<string, unknown>, kind: string | undefined): Record<string, unknown> {
  return kind === undefined ? value : { ...value, kind };
}

function kindProblem(
  value: Readonly<Record<string, unknown>>,
  named: readonly SchemaNode[],
): Omit<Finding, 'path'> {
  const kinds = named.map((variant) => kindOf(variant) ?? '');
  const { kind } = value;
  if (kind === undefined || kind === null) {
    const [first = {}] = named;
    const other = named.find((variant) => foreignSetting(value, variant, first) !== undefined);
    const hint = other && `${foreignSetting(value, other, first)} is a setting of ${kindOf(other)}`;
    return { message: `is missing: name one of ${listed(kinds)}`, ...(hint === undefined ? {} : { hint }) };
  }
  const suggestion = typeof kind === 'string' ? nearest(kind, kinds) : undefined;
  return {
    message: `must be ${listed(kinds)}, is ${described(kind, {})}`,
    ...(suggestion === undefined ? {} : { hint: `did you mean "${suggestion}"?` }),
  };
}
