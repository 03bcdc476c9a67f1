import { isMapping } from '../config/reader/schema-node.ts';
import type { Shape } from '../validation/texts.ts';
import { child, type Documents, type Node } from './documents.ts';

/** Depth limit for recursive schemas. Real parameters are not nested deeper. */
const MAX_DEPTH = 8;

interface GrowingShape {
  readonly types: Set<string>;
  items: GrowingShape | undefined;
  readonly properties: Map<string, GrowingShape>;
  isOpen: boolean;
}

/** The types, items and properties that a schema allows. Branches of `allOf`, `anyOf` and `oneOf` are merged. */
export function readShape(documents: Documents, schema: Node): Shape {
  const shape = emptyShape();
  grow(shape, documents, schema, MAX_DEPTH);
  return shape;
}

function emptyShape(): GrowingShape {
  return { types: new Set(), items: undefined, properties: new Map(), isOpen: true };
}

function grow(shape: GrowingShape, documents: Documents, at: Node, depth: number): void {
  const node = documents.follow(at);
  if ('message' in node || !isMapping(node.value) || depth === 0) return;
  for (const type of typesOf(node.value)) shape.types.add(type);
  growItems(shape, documents, child(node, 'items'), depth);
  growProperties(shape, documents, node, depth);
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const branches = child(node, keyword);
    if (!Array.isArray(branches.value)) continue;
    for (const index of branches.value.keys())
      grow(shape, documents, child(branches, String(index)), depth - 1);
  }
}

function growItems(shape: GrowingShape, documents: Documents, items: Node, depth: number): void {
  if (!isMapping(items.value)) {
    if (shape.types.has('array')) shape.items ??= emptyShape();
    return;
  }
  shape.items ??= emptyShape();
  grow(shape.items, documents, items, depth - 1);
}

function growProperties(shape: GrowingShape, documents: Documents, node: Node, depth: number): void {
  const properties = child(node, 'properties');
  if (!isMapping(properties.value)) return;
  // Without `additionalProperties`, only declared properties are allowed: filters work "only as declared" (contract section 4.1).
  const others = isMapping(node.value) ? node.value.additionalProperties : undefined;
  const opens = others !== undefined && others !== false;
  shape.isOpen = opens || (shape.isOpen && shape.properties.size > 0);
  for (const name of Object.keys(properties.value)) {
    const property = shape.properties.get(name) ?? emptyShape();
    shape.properties.set(name, property);
    grow(property, documents, child(properties, name), depth - 1);
  }
}

function typesOf(schema: Readonly<Record<string, unknown>>): readonly string[] {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((one) => typeof one === 'string');
  const values = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
  return values.map((value) => typeof value);
}
