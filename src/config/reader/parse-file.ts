import { dirname, resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { ConfigError, formatPath, type Problem } from '../problem.ts';
import { type Environment, overlayEnvironment } from './environment.ts';
import { maskUrl } from './mask.ts';
import { misreadKeys } from './misread-keys.ts';
import { check, type Finding, type Path } from './schema-check.ts';
import { asNode, isMapping, type SchemaNode } from './schema-node.ts';
import { readYaml, SCHEMA, type YamlText } from './yaml-text.ts';

/** A schema, or what makes one for a value that has not been checked yet. */
type SchemaFor<S extends TSchema> = S | ((value: unknown) => S);

/**
 * Parses a configuration file and checks it against its schema. Applies the environment variables in `env`.
 * Throws a ConfigError only if the text is not YAML, or has keys that YAML changes.
 *
 * @returns the file and its problems, as `invalid` the top-level keys that have one, and as `paths` where each is. Do not use a value
 * that a problem refers to
 */
export function examine(schemaFor: SchemaFor<TSchema>, text: string, source: string, env: Environment = {}) {
  const yaml = readYaml(text, source);
  if (!('lineOf' in yaml)) throw new ConfigError([yaml]);
  const misread = yaml.hasTypedKeys ? misreadKeys(text, SCHEMA, source) : [];
  if (misread.length > 0) throw new ConfigError(misread);
  const schema = typeof schemaFor === 'function' ? schemaFor(yaml.value) : schemaFor;
  const overlaid = overlayEnvironment(asNode(schema), yaml.value, env);
  const { value, findings } = check(asNode(schema), overlaid.value ?? {});
  const place = placer(asNode(schema), source, yaml, overlaid.variables);
  const all = [...overlaid.findings, ...findings];
  const invalid = new Set(all.map(({ path }) => path[0] ?? ''));
  return { value, place, problems: all.map(place), invalid, paths: all.map(({ path }) => path) };
}

/** Parses and checks a configuration file. Throws a ConfigError with every problem. */
export function parse<S extends TSchema>(
  schema: SchemaFor<S>,
  text: string,
  source: string,
  env: Environment = {},
): {
  readonly value: Static<S>;
  /** Adds file and line, or the environment variable, to a finding of a later check. */
  place(finding: Finding): Problem;
} {
  const { value, place, problems } = examine(schema, text, source, env);
  if (problems.length > 0) throw new ConfigError(problems);
  return { value: value as Static<S>, place };
}

/**
 * Parses and checks a configuration file, and converts it to the form that the gateway uses. Throws a ConfigError with every
 * problem, including those that the conversion finds.
 *
 * @param checkRest finds the problems of a file's other entries, where some do not match the schema and nothing is converted
 */
export function parseAs<S extends TSchema, T>(
  schema: SchemaFor<S>,
  text: string,
  source: string,
  convert: (file: Static<S>, findings: Finding[]) => T,
  checkRest?: (file: Partial<Static<S>>, findings: Finding[]) => void,
): T {
  const { value, place, problems, paths } = examine(schema, text, source);
  const findings: Finding[] = [];
  if (problems.length > 0) {
    checkRest?.(matchingEntries(value, paths) as Partial<Static<S>>, findings);
    throw new ConfigError([...problems, ...findings.map(place)]);
  }
  const converted = convert(value as Static<S>, findings);
  if (findings.length > 0) throw new ConfigError(findings.map(place));
  return converted;
}

/** The sections of a file that are mappings, without the entries that a problem refers to. */
function matchingEntries(file: unknown, paths: readonly Path[]): Record<string, object> {
  const sections: Record<string, object> = {};
  for (const [name, section] of Object.entries(isMapping(file) ? file : {})) {
    const invalid = new Set(paths.filter(([first]) => first === name).map(([, entry]) => entry));
    if (!isMapping(section)) continue;
    const entries = Object.entries(section).filter(([key]) => !invalid.has(key));
    sections[name] = Object.fromEntries(entries);
  }
  return sections;
}

function placer(
  schema: SchemaNode,
  source: string,
  yaml: YamlText,
  variables: ReadonlyMap<string, string>,
): (finding: Finding) => Problem {
  return ({ path, message, hint }) => {
    const written = formatPath(masked(schema, path));
    const variable = variableAt(path, variables);
    if (variable !== undefined)
      return { source: variable, path: written, message, hint: hint ?? serviceLink(message) };
    return { source, line: yaml.lineOf(path), path: written, message, hint };
  };
}

/** The variable that set the value at this path, or the list that it is in. */
function variableAt(path: readonly string[], variables: ReadonlyMap<string, string>): string | undefined {
  return variables.get(formatPath(path)) ?? variables.get(formatPath(path.slice(0, -1)));
}

/** For a Service named `weir`, Kubernetes sets variables such as WEIR_PORT=tcp://10.0.0.1:80. */
function serviceLink(message: string): string | undefined {
  return /"tcp:\/\/[^"]*"$/.test(message)
    ? 'Kubernetes set this for a Service named weir; set enableServiceLinks: false in the pod'
    : undefined;
}

/** The path with secret keys truncated: tokens are keys of a mapping. */
function masked(schema: SchemaNode, path: readonly string[]): readonly string[] {
  let node: SchemaNode | undefined = schema;
  return path.map((word) => {
    const parent: SchemaNode | undefined = node;
    node = parent?.properties?.[word] ?? Object.values(parent?.patternProperties ?? {})[0];
    return parent?.secret ? maskedToken(word) : maskUrl(word);
  });
}

/** The first characters of a token: enough to find it in its file, too few to use it. */
function maskedToken(token: string): string {
  const shown = token.startsWith('sha256:') ? 13 : Math.min(4, Math.floor(token.length / 3));
  return `${token.slice(0, shown)}...`;
}

/** The settings with every relative path resolved against the folder of the settings file. */
export function resolveFiles<T>(schema: TSchema, value: T, source: string): T {
  const folder = dirname(resolve(source));
  return resolved(asNode(schema), value, folder) as T;
}

function resolved(schema: SchemaNode, value: unknown, folder: string): unknown {
  if (typeof value === 'string') {
    const isFile = schema.file || schema.anyOf?.some((variant) => variant.file);
    return isFile ? resolve(folder, value) : value;
  }
  if (Array.isArray(value)) {
    const list = schema.anyOf?.find((variant) => variant.items !== undefined) ?? schema;
    return value.map((one) => resolved(list.items ?? {}, one, folder));
  }
  if (!isMapping(value)) return value;
  const variant = schema.anyOf?.find((one) => one.properties?.kind?.const === value.kind) ?? schema;
  const entries = Object.entries(value).map(([key, one]) => {
    return [key, resolved(variant.properties?.[key] ?? {}, one, folder)];
  });
  return Object.fromEntries(entries);
}
