import { isMapping } from '../../config/reader/schema-node.ts';
import type { Shape } from '../validation/parameter-value.ts';
import { child, type Documents, type Node } from './documents.ts';

/** Depth limit for recursive schemas. Real parameters are not nested deeper. */
const MAX_DEPTH = 8;

interface GrowingShape {
  readonly types: Set<string>;
  items: GrowingShape | undefined;
  readonly properties: Map<string, GrowingShape>;
  isOpen: boolean;
}

/** Limit on schemas read for one parameter: with `$ref`s to itself in many places, a schema multiplies at each level. */
const MAX_SCHEMAS = 5_000;

/** A schema to merge into a shape. */
interface Part {
  readonly shape: GrowingShape;
  readonly node: Node;
  readonly depth: number;
}

/**
 * The types, items and properties that a schema allows. Branches of `allOf`, `anyOf` and `oneOf` are merged. What is nested least
 * is read first; what is beyond the limits allows everything.
 */
export function readShape(documents: Documents, schema: Node): Shape {
  const shape = emptyShape();
  const parts: Part[] = [{ shape, node: schema, depth: MAX_DEPTH }];
  for (const part of parts) {
    const within = part.depth === 0 ? [] : grow(part, documents);
    parts.push(...within.slice(0, MAX_SCHEMAS - parts.length));
  }
  return shape;
}

function emptyShape(): GrowingShape {
  return { types: new Set(), items: undefined, properties: new Map(), isOpen: true };
}

/** Merges a schema into its shape. Returns the schemas within it. */
function grow({ shape, node: at, depth }: Part, documents: Documents): readonly Part[] {
  const node = documents.follow(at);
  if ('message' in node || !isMapping(node.value)) return [];
  for (const type of typesOf(node.value)) shape.types.add(type);
  const branches = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => {
    const list = child(node, keyword);
    if (!Array.isArray(list.value)) return [];
    return [...list.value.keys()].map((index) => ({ shape, node: child(list, String(index)) }));
  });
  const within = [...itemsOf(shape, node), ...propertiesOf(shape, node), ...branches];
  return within.map((part) => ({ ...part, depth: depth - 1 }));
}

function itemsOf(shape: GrowingShape, node: Node): readonly Omit<Part, 'depth'>[] {
  const items = child(node, 'items');
  if (!isMapping(items.value)) {
    if (shape.types.has('array')) shape.items ??= emptyShape();
    return [];
  }
  shape.items ??= emptyShape();
  return [{ shape: shape.items, node: items }];
}

function propertiesOf(shape: GrowingShape, node: Node): readonly Omit<Part, 'depth'>[] {
  const properties = child(node, 'properties');
  if (!isMapping(properties.value)) return [];
  // Without `additionalProperties`, only declared properties are allowed: filters work "only as declared" (contract section 4.1).
  const others = isMapping(node.value) ? node.value.additionalProperties : undefined;
  const opens = others !== undefined && others !== false;
  shape.isOpen = opens || (shape.isOpen && shape.properties.size > 0);
  return Object.keys(properties.value).map((name) => {
    const property = shape.properties.get(name) ?? emptyShape();
    shape.properties.set(name, property);
    return { shape: property, node: child(properties, name) };
  });
}

function typesOf(schema: Readonly<Record<string, unknown>>): readonly string[] {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((one) => typeof one === 'string');
  const values = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
  return values.map((value) => typeof value);
}
