import type { Problem } from '../problem.ts';
import { type Environment, variableName } from './environment.ts';
import { nearest } from './messages.ts';
import type { SchemaNode } from './schema-node.ts';

/** Variables of other commands: `weir platform`, `weir trigger` and `weir listen`. */
const OTHERS = /^WEIR_(?:PLATFORM_\w+|TOKEN)$/;

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
    const hint = meant === undefined ? {} : { hint: `did you mean ${meant}?` };
    return { source: name, path: '', message: 'there is no such setting', ...hint };
  });
}

function isOther(name: string, value: string | undefined): boolean {
  if (OTHERS.test(name) || !value) return true;
  return SERVICE_LINKS.test(name) && (!/_PORT$/.test(name) || value.includes('://'));
}

/** Every setting of a schema; those of a union for each of its kinds. */
function* settingsOf(
  schema: SchemaNode,
  path: readonly string[] = [],
): Generator<{ schema: SchemaNode; path: readonly string[] }> {
  yield { schema, path };
  for (const variant of schema.anyOf ?? []) {
    if (variant.properties !== undefined) yield* propertiesOf(variant, path);
    if (variant.properties?.kind !== undefined) yield { schema: { type: 'string' }, path: [...path, 'kind'] };
  }
  yield* propertiesOf(schema, path);
}

function* propertiesOf(
  { properties = {} }: SchemaNode,
  path: readonly string[],
): ReturnType<typeof settingsOf> {
  for (const [key, property] of Object.entries(properties)) yield* settingsOf(property, [...path, key]);
}
