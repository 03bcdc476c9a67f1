import { variableName } from '../src/config/reader/environment.ts';
import { isMapping, kindOf, type SchemaNode } from '../src/config/reader/schema-node.ts';
import { expected, listed } from '../src/config/reader/value-messages.ts';

/** One setting, as the reference shows it. */
export interface Row {
  /** The path, such as `store.url`. Ids chosen by the user are in angle brackets. */
  readonly path: string;
  readonly takes: string;
  /** As written in YAML; undefined if the setting has no default. */
  readonly fallback: string | undefined;
  readonly variable: string | undefined;
  readonly description: string;
  /** The kinds of a union that have this setting; undefined if all have it. */
  readonly kinds: readonly string[] | undefined;
}

/** Every setting of a schema, in the order of the schema. */
export function rowsOf(schema: SchemaNode, path: readonly string[] = []): readonly Row[] {
  if (schema.anyOf?.some((variant) => kindOf(variant) !== undefined))
    return unionRows(schema, schema.anyOf, path);
  if (schema.properties !== undefined) {
    return Object.entries(schema.properties).flatMap(([key, one]) => rowsOf(one, [...path, key]));
  }
  if (schema.patternProperties !== undefined) {
    return Object.values(schema.patternProperties).flatMap((one) => recordRows(schema, one, path));
  }
  return [row(schema, path)];
}

function recordRows(schema: SchemaNode, item: SchemaNode, path: readonly string[]): readonly Row[] {
  const id = [...path, schema.secret ? '<token>' : (schema.keys ?? '<id>')];
  const rows =
    item.properties === undefined
      ? [{ ...row(item, id), description: schema.description ?? '' }]
      : rowsOf(item, id);
  // No variable can name an entry.
  return rows.map((one) => ({ ...one, variable: undefined }));
}

function unionRows(
  schema: SchemaNode,
  variants: readonly SchemaNode[],
  path: readonly string[],
): readonly Row[] {
  const kind = {
    type: 'string',
    default: isMapping(schema.default) ? schema.default.kind : undefined,
    expects: listed(variants.map((variant) => kindOf(variant) ?? '')),
    description: variants.map(kindMeaning).join(' '),
  };
  const byPath = new Map<string, { row: Row; kinds: string[] }>();
  for (const variant of variants) {
    const { kind: _, ...settings } = variant.properties ?? {};
    for (const one of rowsOf({ properties: settings }, path)) {
      const same = byPath.get(one.path) ?? { row: one, kinds: [] };
      same.kinds.push(kindOf(variant) ?? '');
      byPath.set(one.path, same);
    }
  }
  const rows = [...byPath.values()].map((one) =>
    one.kinds.length === variants.length ? one.row : { ...one.row, kinds: one.kinds },
  );
  return [row(kind, [...path, 'kind']), ...rows];
}

function kindMeaning(variant: SchemaNode): string {
  return `\`${kindOf(variant)}\`: ${variant.properties?.kind?.description}`;
}

function row(schema: SchemaNode, path: readonly string[]): Row {
  return {
    path: path.join('.'),
    takes: expected(schema),
    fallback: schema.default === undefined ? undefined : JSON.stringify(schema.default).replaceAll('"', ''),
    variable: variableName(schema, path),
    description: schema.description ?? '',
    kinds: undefined,
  };
}
