import { settingsSchema } from '../settings.ts';
import { chartValuesSchema } from './chart-values.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Keywords that JSON Schema does not know. */
const ANNOTATIONS = new Set(['env', 'envSelects', 'expects', 'file', 'secret']);

/** values.schema.json of the chart. */
export function valuesSchema(): string {
  const values = JSON.parse(JSON.stringify(chartValuesSchema));
  const settings = JSON.parse(JSON.stringify(settingsSchema));
  values.properties.settings = partial(settings, true);
  const schema = { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Values of the weir chart' };
  return `${JSON.stringify({ ...schema, ...(partial(values, false) as object) }, null, 2)}\n`;
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
  return required.length === 0 ? result : { ...result, required };
}

function stillRequired({ required, properties }: Record<string, Json>): readonly string[] {
  if (!Array.isArray(required)) return [];
  const has = properties as Record<string, { default?: Json }>;
  return required.filter((key) => typeof key === 'string' && has[key]?.default === undefined);
}
