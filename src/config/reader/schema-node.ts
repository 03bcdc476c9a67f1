import type { TSchema } from 'typebox';

/** A TypeBox schema as plain JSON Schema, with the annotations that Weir adds. */
export interface SchemaNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  /** The previous name of this setting. Using it is an error whose hint is the current name. */
  readonly formerly?: string;
  /** The environment variable of this setting, if it is not derived from the path. */
  readonly env?: string;
  /** Setting the variable also selects this variant of a union instead of the default variant. */
  readonly envSelects?: boolean;
  /** Describes the accepted values, if type and range are not enough. */
  readonly expects?: string;
  /** What the keys of a mapping are, in the reference. */
  readonly keys?: string;
  /** Describes the accepted keys of a mapping, for messages. */
  readonly keysExpect?: string;
  /** A file path. A relative path is resolved against the folder of the settings file. */
  readonly file?: boolean;
  /** A URL that must also parse, with a host and properly encoded credentials. */
  readonly url?: boolean;
  /** Never shown in messages. Applies to the value of a setting, or to the keys of a mapping. */
  readonly secret?: boolean;
  /** Name of the setting that becomes `off` when the file has `off` instead of this mapping. */
  readonly offBy?: string;
}

export function asNode(schema: TSchema): SchemaNode {
  return schema as SchemaNode;
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The constant `kind` of a union's object variant, if it has one. */
export function kindOf(variant: SchemaNode): string | undefined {
  const kind = variant.properties?.kind?.const;
  return typeof kind === 'string' ? kind : undefined;
}

/**
 * The kind of a mapping that does not name one: the default kind, unless the mapping has settings that only other kinds have.
 * Undefined if the union has no default.
 */
export function impliedKind(
  schema: SchemaNode,
  given: Readonly<Record<string, unknown>>,
): string | undefined {
  const variants = schema.anyOf ?? [];
  const fallback = isMapping(schema.default) ? schema.default.kind : undefined;
  const own = variants.find((variant) => kindOf(variant) !== undefined && kindOf(variant) === fallback);
  if (own === undefined) return undefined;
  const other = variants.find((variant) => foreignSetting(given, variant, own) !== undefined);
  return other === undefined ? kindOf(own) : undefined;
}

/** A setting of `given` that the schema `variant` has and the schema `own` does not have. */
export function foreignSetting(
  given: Readonly<Record<string, unknown>>,
  variant: SchemaNode,
  own: SchemaNode,
): string | undefined {
  return Object.keys(given).find(
    (key) => Object.hasOwn(variant.properties ?? {}, key) && !Object.hasOwn(own.properties ?? {}, key),
  );
}
