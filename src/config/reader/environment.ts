import { formatPath, type Problem } from '../problem.ts';
import { maskUrl } from './mask.ts';
import type { Finding, Path } from './schema-check.ts';
import { impliedKind, isMapping, kindOf, type SchemaNode } from './schema-node.ts';
import { nearest } from './value-messages.ts';
import { readYaml } from './yaml-text.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Overrides the settings of a file with environment variables. Every scalar setting and every list of scalars has a variable:
 * `WEIR_` followed by the parts of its path, unless its schema names another one. An empty variable counts as not set.
 * Text that is not a number stays text where a number is expected, and `check` reports it.
 *
 * @returns the settings, and the variables that set a value, by the path of the setting (as formatted by `formatPath`)
 */
export function overlayEnvironment(schema: SchemaNode, value: unknown, env: Environment) {
  const overlay = new Overlay(env);
  const laid = overlay.lay(schema, value, []);
  return { value: laid, variables: overlay.variables, findings: overlay.findings };
}

/** `listen.keepAliveMs` -> `WEIR_LISTEN_KEEP_ALIVE_MS` */
export function variableName(schema: SchemaNode, path: readonly string[]): string | undefined {
  const isPlain = schema.type !== 'object' && schema.properties === undefined && schema.const === undefined;
  if (!isPlain || path.length === 0 || (schema.type === 'array' && hasMapping(schema.items)))
    return undefined;
  const words = path.join('_').replace(/([a-z0-9])([A-Z])/g, '$1_$2');
  return schema.env ?? `WEIR_${words.toUpperCase()}`;
}

/** Whether the setting is a mapping, or may be one. */
function hasMapping(schema: SchemaNode | undefined): boolean {
  return schema?.type === 'object' || (schema?.anyOf?.some((variant) => variant.type === 'object') ?? false);
}

class Overlay {
  readonly variables = new Map<string, string>();
  readonly findings: Finding[] = [];
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  lay(schema: SchemaNode, value: unknown, path: Path): unknown {
    const { anyOf, properties } = schema;
    if (anyOf?.some((variant) => kindOf(variant) !== undefined))
      return this.#layUnion(schema, anyOf, value, path);
    if (properties !== undefined) {
      this.#refuseWhole(schema, path);
      return this.#layObject(properties, unfolded(schema, value), path);
    }
    const name = variableName(schema, path);
    const text = name && this.#env[name];
    if (!name || !text) return value;
    this.variables.set(formatPath(path), name);
    return converted(schema, text);
  }

  #layObject(properties: Readonly<Record<string, SchemaNode>>, value: unknown, path: Path): unknown {
    const given = value ?? {};
    if (!isMapping(given)) return value;
    const result: Record<string, unknown> = { ...given };
    for (const [key, property] of Object.entries(properties)) {
      this.#refuseFormer(property, [...path, key]);
      this.#refuseUnnamed(property, [...path, key]);
      const one = this.lay(property, given[key], [...path, key]);
      if (one !== undefined) result[key] = one;
    }
    return value === undefined && Object.keys(result).length === 0 ? undefined : result;
  }

  /** Reports a variable of a renamed setting. Ignoring it silently could go unnoticed for a long time. */
  #refuseFormer(property: SchemaNode, path: Path): void {
    if (property.formerly === undefined) return;
    const former = variableName(property, [...path.slice(0, -1), property.formerly]);
    if (former === undefined || !this.#env[former]) return;
    const message = `the variable ${former} has been renamed`;
    this.findings.push({ path, message, hint: `use ${variableName(property, path)}` });
  }

  /** Reports a variable such as `WEIR_LISTEN`, which cannot turn off the whole section. */
  #refuseWhole({ offBy, properties }: SchemaNode, path: Path): void {
    if (offBy === undefined) return;
    const name = `WEIR_${path.join('_').toUpperCase()}`;
    const own = variableName(properties?.[offBy] ?? {}, [...path, offBy]);
    if (own && this.#env[name])
      this.findings.push({ path, message: `${name} does not set it`, hint: `use ${own}` });
  }

  /** Reports the name that a variable would have by its path, such as `WEIR_LISTEN_PORT`, where it has a name of its own. */
  #refuseUnnamed(property: SchemaNode, path: Path): void {
    if (property.env === undefined) return;
    const { env: name, ...unnamed } = property;
    const guessed = variableName(unnamed, path);
    if (guessed === undefined || guessed === name) return;
    if (isOther(guessed, this.#env[guessed])) return;
    this.findings.push({ path, message: `${guessed} does not set it`, hint: `use ${name}` });
  }

  #layUnion(schema: SchemaNode, variants: readonly SchemaNode[], value: unknown, path: Path): unknown {
    const given = value ?? schema.default;
    if (!isMapping(given)) return value;
    const kind = this.#selectedKind(schema, variants, given.kind, path) ?? impliedKind(schema, given);
    const chosen = variants.find((variant) => kindOf(variant) !== undefined && kindOf(variant) === kind);
    if (chosen === undefined) return { ...given, kind };
    return this.#layObject(chosen.properties ?? {}, { ...given, kind }, path);
  }

  /** The variant of a union to use. A variable that only one variant has, such as `WEIR_REDIS_URL`, selects that variant. */
  #selectedKind(schema: SchemaNode, variants: readonly SchemaNode[], given: unknown, path: Path): unknown {
    const kindPath = [...path, 'kind'];
    const named = this.lay({ type: 'string' }, given, kindPath);
    const defaultKind = isMapping(schema.default) ? schema.default.kind : undefined;
    const selecting = this.#selectingVariable(variants, named, path);
    if (selecting === undefined) return named;
    if (named === undefined || named === defaultKind) return selecting.kind;
    const message = `is ${maskUrl(String(named))}, but ${selecting.variable} is set`;
    const hint = `unset ${selecting.variable}, or set kind to ${selecting.kind}`;
    this.findings.push({ path: kindPath, message, hint });
    return named;
  }

  /** A variable that is set and selects a variant other than `named`. */
  #selectingVariable(variants: readonly SchemaNode[], named: unknown, path: Path) {
    for (const variant of variants.filter((one) => kindOf(one) !== named)) {
      for (const [key, property] of Object.entries(variant.properties ?? {})) {
        const variable = property.envSelects && variableName(property, [...path, key]);
        if (variable && this.#env[variable]) return { kind: kindOf(variant), variable };
      }
    }
    return undefined;
  }
}

/** The mapping that `off` stands for. YAML 1.1 reads that word as false. */
function unfolded({ offBy }: SchemaNode, value: unknown): unknown {
  return offBy !== undefined && (value === 'off' || value === false) ? { [offBy]: 'off' } : value;
}

function converted(schema: SchemaNode, text: string): unknown {
  switch (schema.type) {
    case 'integer':
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'array':
      return text.split(',').map((one) => converted(schema.items ?? {}, one.trim()));
    default:
      return ofUnion(schema, text);
  }
}

/** The number, the list or the mapping that the text is, where the setting accepts one besides text. */
function ofUnion(schema: SchemaNode, text: string): unknown {
  const number = schema.anyOf?.find(({ type }) => type === 'integer');
  if (number !== undefined) return converted(number, text);
  if (text.startsWith('{') && hasMapping(schema)) return mappingIn(text);
  return text.includes(',') && takesList(schema) ? text.split(',').map((one) => one.trim()) : text;
}

/** The mapping that the text is in YAML, or else the text. */
function mappingIn(text: string): unknown {
  const yaml = readYaml(text, '');
  return 'lineOf' in yaml ? yaml.value : text;
}

/** Whether the setting accepts one value or a list. */
function takesList({ anyOf }: SchemaNode): boolean {
  return anyOf?.some((variant) => variant.type === 'array') ?? false;
}

/** Variables of `weir-platform`, which may run in the same environment, and the pace of tests (../../domain/pace.ts). */
const OTHERS = /^WEIR_(?:PLATFORM_\w+|TOKEN|TEST_PACE)$/;

/** Kubernetes sets these for Services whose name begins with `weir`. */
const SERVICE_LINKS = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

/** A problem for each variable whose name begins with `WEIR_` and that sets nothing, such as `WEIR_PROT`. */
export function unknownVariables(schema: SchemaNode, env: Environment): readonly Problem[] {
  const known = new Set<string>();
  const renamed = new Map<string, string>();
  for (const { schema: setting, path } of settingsOf(schema)) {
    const name = variableName(setting, path);
    if (name === undefined) continue;
    known.add(name);
    const { env: _, ...unnamed } = setting;
    renamed.set(variableName(unnamed, path) ?? name, name);
  }
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith('WEIR_') && !known.has(name) && !isOther(name, env[name]),
  );
  return unknown.sort().map((name) => {
    const meant = renamed.get(name) ?? nearest(name, [...known]);
    const hint = meant && `did you mean ${meant}?`;
    return { source: name, path: '', message: 'there is no such setting', hint };
  });
}

function isOther(name: string, value: string | undefined): boolean {
  if (OTHERS.test(name) || !value) return true;
  return SERVICE_LINKS.test(name) && (!/_PORT$/.test(name) || value.includes('://'));
}

/** Every setting of a schema, including the settings of each kind of a union. */
function* settingsOf(schema: SchemaNode, path: Path = []): Generator<{ schema: SchemaNode; path: Path }> {
  yield { schema, path };
  for (const variant of schema.anyOf ?? []) {
    if (variant.properties !== undefined) yield* propertiesOf(variant, path);
    if (variant.properties?.kind !== undefined) yield { schema: { type: 'string' }, path: [...path, 'kind'] };
  }
  yield* propertiesOf(schema, path);
}

function* propertiesOf({ properties = {} }: SchemaNode, path: Path): ReturnType<typeof settingsOf> {
  for (const [key, property] of Object.entries(properties)) yield* settingsOf(property, [...path, key]);
}
