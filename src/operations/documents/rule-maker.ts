import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import type { Check, Shape, ValueRule } from '../validation/parameter-value.ts';
import type { Reports } from './compiler.ts';
import { child, type Documents, itemsOf, type Node, problemAt } from './documents.ts';
import { DanglingReferences } from './schema-faults.ts';
import type { SchemaError, Schemas } from './schemas.ts';

/** Dependencies for creating rules. */
export interface RuleMaker {
  readonly documents: Documents;
  readonly schemas: Schemas;
  readonly problems: Problem[];
  readonly warnings: Problem[];
  readonly maxBodyBytes: number;
  /** Whether the router ignores the letter case of paths. */
  readonly ignoresCase: boolean;
}

/** The rule for one value. Undefined, with a problem reported, if its schema cannot be compiled. */
export function valueRule(maker: RuleMaker, name: string, schema: Node): ValueRule | undefined {
  const check = compiledCheck(maker, schema);
  return check === undefined ? undefined : { name, check, shape: readShape(maker.schemas, schema) };
}

/** Compiles a schema. Without a schema, every value is valid. */
export function compiledCheck(maker: RuleMaker, schema: Node, reports: Reports = 'first'): Check | undefined {
  if (schema.value === undefined) return () => undefined;
  const check: Check | SchemaError = maker.schemas.compile(schema, reports);
  if (typeof check === 'function') return check;
  const written = maker.documents.follow(schema);
  const { pattern, reason, at = 'message' in written ? schema : written } = check;
  const dangling = new DanglingReferences(maker.documents);
  dangling.search(schema);
  if (dangling.found.length > 0) {
    maker.problems.push(...dangling.found);
    return undefined;
  }
  const found = pattern === undefined ? undefined : findPattern(maker.documents, at, pattern);
  maker.problems.push(
    found === undefined
      ? problemAt(at, `its schema cannot be used: ${reason}`)
      : problemAt(found, reason, 'rewrite it, or set x-weir: { validate: false } for the operation'),
  );
  return undefined;
}

/** Finds a pattern in a schema and the schemas that it refers to. */
function findPattern(documents: Documents, schema: Node, pattern: string): Node | undefined {
  const seen = new Set<unknown>();
  const waiting = [schema];
  for (const node of waiting) {
    const target = documents.follow(node);
    if ('message' in target || typeof target.value !== 'object' || seen.has(target.value)) continue;
    seen.add(target.value);
    const written = child(target, 'pattern');
    if (written.value === pattern) return written;
    const byPattern = child(child(target, 'patternProperties'), pattern);
    if (byPattern.value !== undefined) return byPattern;
    for (const key of Object.keys(target.value ?? {})) waiting.push(child(target, key));
  }
  return undefined;
}

/** Depth limit for recursive schemas. Real parameters are not nested deeper. */
const MAX_DEPTH = 8;

interface GrowingShape {
  readonly types: Set<string>;
  items: GrowingShape | undefined;
  readonly prefix: GrowingShape[];
  readonly properties: Map<string, GrowingShape>;
  others: GrowingShape | undefined;
  isOpen: boolean;
  /** Whether a schema says so. */
  opens: boolean;
}

/** Limit on schemas read for one parameter: with `$ref`s to itself in many places, a schema multiplies at each level. */
const MAX_SCHEMAS = 5_000;

/** A schema to merge into a shape. */
interface SchemaPart {
  readonly shape: GrowingShape;
  readonly node: Node;
  readonly depth: number;
  /** Whether it is within `if`, `then` or `else`, whose properties are only some of those that an object has. */
  readonly isConditional: boolean;
}

/**
 * The types, items and properties that a schema allows. Branches of `allOf`, `anyOf` and `oneOf`, and of conditions, are merged. What is
 * nested least is read first; what is beyond the limits allows everything.
 */
function readShape(schemas: Schemas, schema: Node): Shape {
  const shape = emptyShape();
  const parts: SchemaPart[] = [{ shape, node: schema, depth: MAX_DEPTH, isConditional: false }];
  for (const part of parts) {
    const within = part.depth === 0 ? [] : grow(part, schemas);
    parts.push(...within.slice(0, MAX_SCHEMAS - parts.length));
  }
  return shape;
}

function emptyShape(): GrowingShape {
  return {
    types: new Set(),
    items: undefined,
    prefix: [],
    properties: new Map(),
    others: undefined,
    isOpen: true,
    opens: false,
  };
}

/** Merges a schema into its shape. Returns the schemas within it. */
function grow(
  { shape, node: at, depth, isConditional }: SchemaPart,
  schemas: Schemas,
): readonly SchemaPart[] {
  const layers = schemas.layers(at);
  for (const type of layers.length > 0 ? typesOf(layers) : UNKNOWN) shape.types.add(type);
  const within = layers.flatMap((node) => [
    ...itemShapeOf(shape, node),
    ...prefixOf(shape, node),
    ...propertiesOf(shape, node, isConditional),
    ...othersOf(shape, node),
    ...branchesOf(node).map((branch) => ({ ...branch, shape })),
  ]);
  return within.map((part) => ({ isConditional, ...part, depth: depth - 1 }));
}

/** The types of a text whose schema only the compiler finds, such as one with an `$id`. */
const UNKNOWN = ['string', 'number', 'boolean'];

function branchesOf(node: Node) {
  const lists = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => itemsOf(child(node, keyword)));
  const conditions = ['if', 'then', 'else'].map((keyword) => child(node, keyword));
  return [
    ...lists.map((branch) => ({ node: branch })),
    ...conditions
      .filter(({ value }) => isMapping(value))
      .map((branch) => ({ node: branch, isConditional: true })),
  ];
}

function itemShapeOf(shape: GrowingShape, node: Node) {
  const items = child(node, 'items');
  if (!isMapping(items.value)) {
    if (shape.types.has('array')) shape.items ??= emptyShape();
    return [];
  }
  shape.items ??= emptyShape();
  return [{ shape: shape.items, node: items }];
}

/** JSON Schema 2020-12, core, section 10.3.1.1: the schemas of the first items. */
function prefixOf(shape: GrowingShape, node: Node) {
  return itemsOf(child(node, 'prefixItems')).map((one, index) => {
    const item = shape.prefix[index] ?? emptyShape();
    shape.prefix[index] = item;
    return { shape: item, node: one };
  });
}

function propertiesOf(shape: GrowingShape, node: Node, isConditional: boolean) {
  const properties = child(node, 'properties');
  const declares = isMapping(properties.value) && !isConditional;
  // Without `additionalProperties`, only declared properties are allowed: filters work "only as declared" (contract section 4.1).
  shape.opens ||= ['additionalProperties', 'unevaluatedProperties', 'patternProperties'].some((keyword) => {
    const { value } = child(node, keyword);
    return value !== undefined && value !== false;
  });
  shape.isOpen = shape.opens || (shape.isOpen && !declares);
  if (!isMapping(properties.value)) return [];
  return Object.keys(properties.value).map((name) => {
    const property = shape.properties.get(name) ?? emptyShape();
    shape.properties.set(name, property);
    return { shape: property, node: child(properties, name) };
  });
}

/** The schemas of properties that are not declared by their names. All of them are merged. */
function othersOf(shape: GrowingShape, node: Node) {
  const patterns = child(node, 'patternProperties');
  const ofPatterns = isMapping(patterns.value) ? Object.keys(patterns.value) : [];
  const schemas = [
    child(node, 'additionalProperties'),
    child(node, 'unevaluatedProperties'),
    ...ofPatterns.map((pattern) => child(patterns, pattern)),
  ].filter(({ value }) => isMapping(value));
  if (schemas.length === 0) return [];
  const others = shape.others ?? emptyShape();
  shape.others = others;
  return schemas.map((one) => ({ shape: others, node: one }));
}

/** The declared types, or else the types of the allowed values. */
function typesOf(layers: readonly Node[]): readonly string[] {
  const schemas = layers.map(({ value }) => value).filter(isMapping);
  const types = schemas.flatMap(({ type }) => type).filter((one) => typeof one === 'string');
  if (types.length > 0) return types;
  return schemas.flatMap((one) => valuesOf(one).map(typeOfValue));
}

function valuesOf(schema: Readonly<Record<string, unknown>>): readonly unknown[] {
  if (Array.isArray(schema.enum)) return schema.enum;
  return 'const' in schema ? [schema.const] : [];
}

/** The JSON Schema type of a value. */
function typeOfValue(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Reports that the value of a parameter is not validated, because its style has no form for it that can be read. */
export function leftUnread<Rule extends ValueRule>(maker: RuleMaker, parameter: Node, rule: Rule): Rule {
  maker.warnings.push(problemAt(parameter, 'is not validated', UNREAD));
  return { ...rule, check: () => undefined };
}

const UNREAD =
  'objects, and lists of lists, are read only from a deepObject, from JSON in content, and an object from an exploded query';

/** Whether each value of a shape is one text, or a list of texts. */
export function isFlat({ types, items, prefix }: Shape): boolean {
  const isNested = (item: Shape) => item.types.has('object') || item.types.has('array');
  return !types.has('object') && !(items && isNested(items)) && !prefix.some(isNested);
}
