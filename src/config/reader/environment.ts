import { formatPath } from '../problem.ts';
import type { Finding } from './check.ts';
import { maskUrl } from './mask.ts';
import { impliedKind, isMapping, kindOf, type SchemaNode } from './schema-node.ts';
import { readYaml } from './yaml-text.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings after environment variables have been applied. */
export interface Overlaid {
  readonly value: unknown;
  /** The variable that set a value, by the path of the setting (as formatted by `formatPath`). */
  readonly variables: ReadonlyMap<string, string>;
  readonly findings: readonly Finding[];
}

interface Overlay {
  readonly env: Environment;
  readonly variables: Map<string, string>;
  readonly findings: Finding[];
}

/**
 * Overrides the settings of a file with environment variables. Every scalar setting and every list of scalars has a variable:
 * `WEIR_` followed by the parts of its path, unless its schema names another one. An empty variable counts as not set.
 * Text that is not a number stays text where a number is expected, and `check` reports it.
 */
export function overlayEnvironment(schema: SchemaNode, value: unknown, env: Environment): Overlaid {
  const overlay: Overlay = { env, variables: new Map(), findings: [] };
  return { ...overlay, value: lay(schema, value, [], overlay) };
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

function lay(schema: SchemaNode, value: unknown, path: readonly string[], overlay: Overlay): unknown {
  if (schema.anyOf?.some((variant) => kindOf(variant) !== undefined)) {
    return layUnion(schema, schema.anyOf, value, path, overlay);
  }
  if (schema.properties !== undefined) return layObject(schema.properties, value, path, overlay);
  const name = variableName(schema, path);
  const text = name === undefined ? undefined : overlay.env[name];
  if (name === undefined || text === undefined || text === '') return value;
  overlay.variables.set(formatPath(path), name);
  return converted(schema, text);
}

function layObject(
  properties: Readonly<Record<string, SchemaNode>>,
  value: unknown,
  path: readonly string[],
  overlay: Overlay,
): unknown {
  const given = value ?? {};
  if (!isMapping(given)) return value;
  const result: Record<string, unknown> = { ...given };
  for (const [key, property] of Object.entries(properties)) {
    refuseFormerVariable(property, key, path, overlay);
    const one = lay(property, given[key], [...path, key], overlay);
    if (one !== undefined) result[key] = one;
  }
  return value === undefined && Object.keys(result).length === 0 ? undefined : result;
}

/** Reports a variable of a renamed setting. Ignoring it silently could go unnoticed for a long time. */
function refuseFormerVariable(
  property: SchemaNode,
  key: string,
  path: readonly string[],
  { env, findings }: Overlay,
): void {
  if (property.formerly === undefined) return;
  const former = variableName(property, [...path, property.formerly]);
  if (former === undefined || !env[former]) return;
  findings.push({
    path: [...path, key],
    message: `the variable ${former} has been renamed`,
    hint: `use ${variableName(property, [...path, key])}`,
  });
}

function layUnion(
  schema: SchemaNode,
  variants: readonly SchemaNode[],
  value: unknown,
  path: readonly string[],
  overlay: Overlay,
): unknown {
  const given = value ?? schema.default;
  if (!isMapping(given)) return value;
  const kind = selectedKind(schema, variants, given, path, overlay) ?? impliedKind(schema, given);
  const chosen = variants.find((variant) => kindOf(variant) !== undefined && kindOf(variant) === kind);
  if (chosen === undefined) return { ...given, kind };
  return layObject(chosen.properties ?? {}, { ...given, kind }, path, overlay);
}

/** The variant of a union to use. A variable that only one variant has, such as `WEIR_REDIS_URL`, selects that variant. */
function selectedKind(
  schema: SchemaNode,
  variants: readonly SchemaNode[],
  given: Readonly<Record<string, unknown>>,
  path: readonly string[],
  overlay: Overlay,
): unknown {
  const kindPath = [...path, 'kind'];
  const named = lay({ type: 'string' }, given.kind, kindPath, overlay);
  const defaultKind = isMapping(schema.default) ? schema.default.kind : undefined;
  const selecting = selectingVariable(variants, named, path, overlay.env);
  if (selecting === undefined) return named;
  if (named === undefined || named === defaultKind) return selecting.kind;
  overlay.findings.push({
    path: kindPath,
    message: `is ${maskUrl(String(named))}, but ${selecting.variable} is set`,
    hint: `unset ${selecting.variable}, or set kind to ${selecting.kind}`,
  });
  return named;
}

/** A variable that is set and selects a variant other than `named`. */
function selectingVariable(
  variants: readonly SchemaNode[],
  named: unknown,
  path: readonly string[],
  env: Environment,
): { kind: string | undefined; variable: string } | undefined {
  for (const variant of variants.filter((one) => kindOf(one) !== named)) {
    for (const [key, property] of Object.entries(variant.properties ?? {})) {
      const variable = property.envSelects ? variableName(property, [...path, key]) : undefined;
      if (variable !== undefined && env[variable]) return { kind: kindOf(variant), variable };
    }
  }
  return undefined;
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

/** The list or the mapping that the text is, where the setting accepts one besides text. */
function ofUnion(schema: SchemaNode, text: string): unknown {
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
