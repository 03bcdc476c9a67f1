/** Values as a URL or a header spells them: text, lists of text, and what brackets in names make of them. */
export type RawValue = string | RawValue[] | { [key: string]: RawValue };

/** What a schema lets a value be, as far as it takes to read a value from its text. */
export interface Shape {
  /** JSON Schema's names of types; empty where anything may stand. */
  readonly types: ReadonlySet<string>;
  /** Of a list's items; undefined where it holds no lists. */
  readonly items: Shape | undefined;
  readonly properties: ReadonlyMap<string, Shape>;
  /** Whether there may be properties besides those. */
  readonly isOpen: boolean;
}

/** RFC 8259 section 6, so that `+5`, `0x10`, `1_000`, `007` and other digits than 0 to 9 are no numbers. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** An integer without `.0` or an exponent: other readers take the `1` of `1e2` for the whole of it. */
const INTEGER = /^-?(?:0|[1-9]\d*)$/;

/**
 * The value that a text stands for. A text that is no value of its types stays a text, for the schema to refuse.
 *
 * @param prefersText whether what may be text or something else is text
 */
export function readValue(tree: RawValue, shape: Shape | undefined, prefersText: boolean): unknown {
  if (shape === undefined) return tree;
  if (typeof tree === 'string') return scalarOf(tree, shape.types, prefersText);
  if (Array.isArray(tree)) return tree.map((item) => readValue(item, shape.items, prefersText));
  const value: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(tree)) {
    value[key] = readValue(tree[key] ?? '', shape.properties.get(key), prefersText);
  }
  return value;
}

function scalarOf(text: string, types: ReadonlySet<string>, prefersText: boolean): unknown {
  if (types.size === 0 || (prefersText && types.has('string'))) return text;
  if (types.has('number') ? NUMBER.test(text) : types.has('integer') && INTEGER.test(text))
    return Number(text);
  if (types.has('boolean')) {
    if (text === 'true') return true;
    if (text === 'false') return false;
  }
  return text;
}
