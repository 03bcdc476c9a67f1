import { Check, Compile, type Validator } from 'typebox/schema';
import type { Advice } from '../problem.ts';
import { maskUrl } from './mask.ts';
import { foreignSetting, impliedKind, isMapping, kindOf, type SchemaNode } from './schema-node.ts';
import { described, didYouMean, expected, listed } from './value-messages.ts';

/** The keys from the root to a setting. */
export type Path = readonly string[];

/** A problem whose file, line or variable has not been determined yet. */
export interface Finding extends Advice {
  readonly path: readonly string[];
}

/**
 * Applies the defaults and reports everything that does not match the schema. If there are findings, do not use the value.
 *
 * TypeBox's own error list reports every variant of a union and cannot suggest a key. Here, a union of mappings is checked
 * only against the variant selected by `kind`, or by default.
 */
export function check(schema: SchemaNode, value: unknown): { value: unknown; findings: readonly Finding[] } {
  const reader = new SettingsReader();
  return { value: reader.read(schema, value, []), findings: reader.findings };
}

/** What checking with a schema has come to. */
interface Checked {
  times: number;
  validator: Validator | undefined;
}

/** Compiling a schema takes about as long as this many checks without. */
const TIMES_UNCOMPILED = 20;

class SettingsReader {
  readonly findings: Finding[] = [];
  readonly #checked = new Map<SchemaNode, Checked>();

  read(schema: SchemaNode, given: unknown, path: Path): unknown {
    const value = given ?? schema.default;
    if (schema.anyOf !== undefined) return this.#readUnion(schema, schema.anyOf, value, path);
    if (schema.properties !== undefined) return this.#readObject(schema, value, path);
    if (schema.patternProperties !== undefined) return this.#readRecord(schema, value, path);
    if (schema.type === 'array') return this.#readArray(schema, value, path);
    if (!this.#matches(schema, value)) this.#mismatch(schema, value, path, urlHint(schema, value));
    else if (schema.url && !isReadableUrl(String(value)))
      this.#mismatch(schema, value, path, PERCENT_ENCODING);
    return value;
  }

  /** Whether a value matches. A file may have thousands of entries, so their schemas are compiled. */
  #matches(schema: SchemaNode, value: unknown): boolean {
    const checked = this.#checked.get(schema) ?? { times: 0, validator: undefined };
    this.#checked.set(schema, checked);
    if (++checked.times > TIMES_UNCOMPILED) checked.validator ??= Compile(schema);
    return checked.validator?.Check(value) ?? Check(schema, value);
  }

  #mismatch(schema: SchemaNode, value: unknown, path: Path, hint?: string): void {
    if (value === undefined || value === null) {
      this.findings.push({ path, message: 'is missing', hint: `expected ${expected(schema)}` });
    } else {
      const message = `must be ${expected(schema)}, is ${described(value, schema)}`;
      this.findings.push({ path, message, hint });
    }
  }

  /** @param kinds all variants, if the schema is one of them */
  #readObject(schema: SchemaNode, value: unknown, path: Path, kinds: readonly SchemaNode[] = []): unknown {
    const { properties = {} } = schema;
    if (!isMapping(value)) {
      this.#mismatch(schema, value, path);
      return value;
    }
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(properties, key))
        this.findings.push(keyOfAnotherKind(key, schema, kinds, path) ?? unknownKey(key, properties, path));
    }
    const result: Record<string, unknown> = {};
    for (const [key, property] of Object.entries(properties)) {
      const given = Object.hasOwn(value, key) ? value[key] : undefined;
      const absent = given === undefined || given === null;
      if (absent && property.default === undefined && !schema.required?.includes(key)) continue;
      result[key] = this.read(property, given, [...path, key]);
    }
    return result;
  }

  #readRecord(schema: SchemaNode, value: unknown, path: Path): unknown {
    if (!isMapping(value)) {
      this.#mismatch(schema, value, path);
      return value;
    }
    const [[pattern, item] = ['', {}]] = Object.entries(schema.patternProperties ?? {});
    const name = new RegExp(pattern, 'u');
    const entries = Object.entries(value).map(([key, one]) => {
      if (key === '') this.findings.push({ path: [...path, key], message: 'a key must not be empty' });
      else if (!name.test(key))
        this.findings.push({
          path: [...path, key],
          message: `the name must ${schema.keysExpect ?? `match ${pattern}`}`,
        });
      return [key, this.read(item, one, [...path, key])];
    });
    return Object.fromEntries(entries);
  }

  #readArray(schema: SchemaNode, value: unknown, path: Path): unknown {
    const { items = {}, ...list } = schema;
    if (!Check(list, value)) this.#mismatch(schema, value, path);
    if (!Array.isArray(value)) return value;
    return value.map((one, index) => this.read(items, one, [...path, String(index)]));
  }

  #readUnion(schema: SchemaNode, variants: readonly SchemaNode[], value: unknown, path: Path): unknown {
    const mappings = variants.filter((variant) => variant.properties !== undefined);
    if (!isMapping(value) || mappings.length === 0) {
      const fits = variants.some(
        (variant) => variant.properties === undefined && this.#matches(variant, value),
      );
      if (!fits) this.#mismatch(schema, value, path);
      return value;
    }
    const named = mappings.filter((variant) => kindOf(variant) !== undefined);
    const kind = value.kind ?? impliedKind(schema, value);
    const chosen = named.length === 0 ? mappings[0] : named.find((variant) => kindOf(variant) === kind);
    if (chosen !== undefined) return this.#readObject(chosen, withKind(value, kindOf(chosen)), path, named);
    this.findings.push({ path: [...path, 'kind'], ...kindProblem(value, named) });
    return value;
  }
}

function urlHint({ url, secret }: SchemaNode, value: unknown): string | undefined {
  const text = String(value);
  const end = text.lastIndexOf('@');
  if (!url || end === -1) return undefined;
  if (!secret) return NO_CREDENTIALS;
  return /[/?#]/.test(text.slice(text.indexOf('://') + 3, end)) ? PERCENT_ENCODING : undefined;
}

const NO_CREDENTIALS = 'a user name or password is not allowed here';
const PERCENT_ENCODING = 'percent-encode special characters in a password, such as %23 for #';

function isReadableUrl(text: string): boolean {
  try {
    const { protocol, hostname, username, password } = new URL(text);
    decodeURIComponent(username + password);
    // The query of a PostgreSQL URL can name its host or socket.
    return hostname !== '' || protocol.startsWith('postgres');
  } catch {
    return false;
  }
}

function unknownKey(key: string, properties: Readonly<Record<string, SchemaNode>>, path: Path): Finding {
  const known = Object.keys(properties);
  const renamed = known.find((name) => properties[name]?.formerly === key);
  if (renamed !== undefined) {
    return { path: [...path, key], message: `"${key}" has been renamed`, hint: `use "${renamed}"` };
  }
  const hint = didYouMean(key, known) ?? `expected one of ${known.join(', ')}`;
  return { path: [...path, key], message: `unknown key "${maskUrl(key)}"`, hint };
}

/** A key that the mapping would have with another `kind`. */
function keyOfAnotherKind(
  key: string,
  schema: SchemaNode,
  kinds: readonly SchemaNode[],
  path: Path,
): Finding | undefined {
  const others = kinds.filter(({ properties = {} }) => Object.hasOwn(properties, key));
  if (others.length === 0) return undefined;
  const names = listed(others.map((one) => kindOf(one) ?? ''));
  return {
    path: [...path, key],
    message: `is a setting of kind ${names}`,
    hint: `kind is ${kindOf(schema)}`,
  };
}

function withKind(value: Record<string, unknown>, kind: string | undefined): Record<string, unknown> {
  return kind === undefined ? value : { ...value, kind };
}

function kindProblem(value: Readonly<Record<string, unknown>>, named: readonly SchemaNode[]): Advice {
  const kinds = named.map((variant) => kindOf(variant) ?? '');
  const { kind } = value;
  if (kind === undefined || kind === null) {
    const [first = {}] = named;
    const other = named.find((variant) => foreignSetting(value, variant, first) !== undefined);
    const hint = other && `${foreignSetting(value, other, first)} is a setting of ${kindOf(other)}`;
    return { message: `is missing: name one of ${listed(kinds)}`, hint };
  }
  return {
    message: `must be ${listed(kinds)}, is ${described(kind, {})}`,
    hint: typeof kind === 'string' ? didYouMean(kind, kinds) : undefined,
  };
}
