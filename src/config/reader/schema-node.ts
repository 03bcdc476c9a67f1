import type { TSchema } from 'typebox';

/** A TypeBox schema seen as the JSON Schema that it is, with the annotations that Weir adds. */
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
  /** The former name of this setting, which is refused with this one as the hint. */
  readonly formerly?: string;
  /** The environment variable that overrides this setting, where it is not the path's own words. */
  readonly env?: string;
  /** Setting the variable also chooses this variant of a union, in place of the union's default variant. */
  readonly envSelects?: boolean;
  /** What the setting takes, in words, where type and range do not say it. */
  readonly expects?: string;
  /** A file: a relative one is found from the folder of the settings file. */
  readonly file?: boolean;
  /** A URL whose host and credentials can be read, besides fitting its pattern. */
  readonly url?: boolean;
  /** Never shown in a message: the value of a setting, or the keys of a mapping. */
  readonly secret?: boolean;
}

export function asNode(schema: TSchema): SchemaNode {
  return schema as SchemaNode;
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The `kind` that an object variant of a union carries; undefined where it carries none. */
export function kindOf(variant: SchemaNode): string | undefined {
  const kind = variant.properties?.kind?.const;
  return typeof kind === 'string' ? kind : undefined;
}
