import type { TSchema } from 'typebox';
import { settingsSchema } from '../src/config/settings/settings.ts';
import { chartValuesSchema } from './chart-values.ts';

type Json = null | boolean | number | string | readonly Json[] | JsonObject;

interface JsonObject {
  readonly [key: string]: Json;
}

/** Keywords that are not part of JSON Schema. */
const ANNOTATIONS = new Set([
  'env',
  'envSelects',
  'expects',
  'file',
  'keys',
  'keysExpect',
  'offBy',
  'secret',
  'url',
]);

/**
 * values.schema.json of the chart. Helm drops a key that a user sets to null, so no key of the chart's own is
 * required; what is passed on as it is, such as an override or a principal, must be whole.
 */
export function valuesSchema(): string {
  const { properties, ...chart } = jsonOf(chartValuesSchema);
  const { limits = {}, identity = {} } = properties as JsonObject;
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the weir chart',
    ...(partial(chart, true) as JsonObject),
    properties: {
      ...(partial(properties ?? {}, true) as JsonObject),
      limits: withoutRequired(partial(limits, false)),
      identity: withoutRequired(partial(identity, false), ['static', 'existingSecret']),
      settings: partial(jsonOf(settingsSchema), true),
    },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function jsonOf(schema: TSchema): JsonObject {
  return JSON.parse(JSON.stringify(schema)) as JsonObject;
}

/** What has a default may be left out; with `everything` nothing is required at all. */
function partial(schema: Json, everything: boolean): Json {
  if (Array.isArray(schema)) return schema.map((one) => partial(one, everything));
  if (typeof schema !== 'object' || schema === null) return schema;
  const result: Record<string, Json> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(key) && typeof value !== 'object') continue;
    result[key] = key === 'default' || key === 'enum' ? value : partial(value, everything);
  }
  const required = everything ? [] : stillRequired(result);
  delete result.required;
  return withoutAnyOf(required.length === 0 ? result : { ...result, required });
}

/**
 * The same schema without `anyOf` where a list of types or of values says it as well. Helm prints a line for each
 * variant of an `anyOf`, and a single line for a list.
 */
function withoutAnyOf(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const variants = (anyOf as readonly JsonObject[]).map(({ description: _, ...variant }) => variant);
  if (variants.every((variant) => variant.const !== undefined))
    return { ...rest, enum: variants.map(({ const: value = null }) => value) };
  const types = variants.flatMap(({ type }) => type ?? []);
  const keywords = variants.flatMap(({ type: _, ...others }) => Object.keys(others));
  const isAmbiguous = (all: readonly Json[]) => new Set(all).size < all.length;
  const isTyped = variants.every(
    ({ type, ...others }) => type !== undefined && !('const' in others) && !('enum' in others),
  );
  if (!isTyped || isAmbiguous(types) || isAmbiguous([...keywords, ...Object.keys(rest)])) return schema;
  return { ...rest, ...Object.assign({}, ...variants), type: types };
}

/** Requires no key of a mapping, and none of these mappings in it; an earlier chart's values lack those that are new. */
function withoutRequired(schema: Json, within: readonly string[] = []): JsonObject {
  const { required: _, properties, ...rest } = schema as JsonObject;
  const all = Object.entries(properties as JsonObject);
  const own = all.map(([key, one]) => [key, within.includes(key) ? withoutRequired(one) : one]);
  return { ...rest, properties: Object.fromEntries(own) };
}

function stillRequired({ required, properties }: Record<string, Json>): readonly string[] {
  if (!Array.isArray(required)) return [];
  const has = properties as Record<string, { default?: Json }>;
  return required.filter((key) => typeof key === 'string' && has[key]?.default === undefined);
}
