import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { child, type Documents, itemsOf, type Node, problemAt } from './documents.ts';

/** Keywords whose values are data, in which a `$ref` is a property like any other. */
const DATA = new Set(['example', 'examples', 'default', 'const', 'enum']);

/** Keywords whose keys are names, not keywords. */
const NAMES = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'schemas',
]);

/** Finds `$ref`s that lead nowhere. Each part of a description is searched once, however often it is used. */
export class DanglingReferences {
  readonly found: Problem[] = [];
  readonly #documents: Documents;
  readonly #seen = new Set<unknown>();

  constructor(documents: Documents) {
    this.#documents = documents;
  }

  /** Searches a node and everything that its `$ref`s lead to. */
  search(node: Node): void {
    const waiting = [node];
    for (const one of waiting) {
      const { value } = one;
      if (typeof value !== 'object' || value === null || this.#seen.has(value)) continue;
      this.#seen.add(value);
      const target = isMapping(value) && isPointer(value.$ref) ? this.#documents.follow(one) : one;
      if ('message' in target) this.found.push(target);
      else waiting.push(target, ...parts(one));
    }
  }
}

/** Whether a `$ref` is a JSON Pointer. The schema compiler resolves anchors. */
function isPointer(reference: unknown): boolean {
  return typeof reference === 'string' && !/#[^/]/.test(reference);
}

/** The children that are not data. */
function parts(node: Node): readonly Node[] {
  const keys = Object.keys(node.value as object);
  const areNames = NAMES.has(node.path.at(-1) ?? '');
  return keys
    .filter((key) => areNames || !(DATA.has(key) || key.startsWith('x-')))
    .map((key) => child(node, key));
}

/** Keywords of schemas that every value is checked with, if it is with their own schema: one, or a list. */
const ALWAYS = { one: ['not', 'if'], list: ['allOf', 'oneOf'], named: [] };

/** Keywords of schemas that apply to a part of the value, or to some values only, which may be mappings by names. */
const SOMETIMES = {
  one: [
    'items',
    'additionalItems',
    'additionalProperties',
    'unevaluatedItems',
    'unevaluatedProperties',
    'propertyNames',
    'contains',
    'then',
    'else',
  ],
  list: ['items', 'prefixItems', 'anyOf'],
  named: ['properties', 'patternProperties', 'dependentSchemas'],
};

/**
 * Finds schemas that refer to themselves for every value (JSON Schema 2020-12, core, section 9.4.1): no check with them would end. Where it
 * depends on the value, as in `anyOf`, some checks do. On the way, it warns of texts, numbers and lists that stand where a schema belongs.
 */
export class SchemaReview {
  readonly warnings: Problem[] = [];
  readonly #documents: Documents;
  readonly #ignoresSiblings: boolean;
  /** Schemas with no circle among the schemas of every value. */
  readonly #finite = new Set<unknown>();
  /** Schemas with no circle within them either. */
  readonly #clean = new Set<unknown>();

  /** @param ignoresSiblings whether what is beside a `$ref` does not count */
  constructor(documents: Documents, ignoresSiblings: boolean) {
    this.#documents = documents;
    this.#ignoresSiblings = ignoresSiblings;
  }

  /** The first such schema among a schema, what its `$ref`s lead to, and what is within them. */
  findCircular(schema: Node): Node | undefined {
    const seen = new Set<unknown>();
    const waiting = [schema];
    for (const one of waiting) {
      if (isNoSchema(one.value)) this.warnings.push(problemAt(one, ...NO_SCHEMA));
      if (!isMapping(one.value) || seen.has(one.value) || this.#clean.has(one.value)) continue;
      seen.add(one.value);
      if (this.#isCircular(one)) return one;
      waiting.push(...this.#ofEveryValue(one), ...schemasIn(one, SOMETIMES));
    }
    for (const one of seen) this.#clean.add(one);
    return undefined;
  }

  /** Whether the schemas of every value lead back to one of them. Goes in depth, without recursion: chains may be long. */
  #isCircular(schema: Node): boolean {
    const open = new Set<unknown>();
    const waiting = [schema];
    for (let node = waiting.at(-1); node !== undefined; node = waiting.at(-1)) {
      const { value } = node;
      if (open.has(value)) {
        open.delete(value);
        this.#finite.add(value);
      }
      if (this.#finite.has(value)) {
        waiting.pop();
        continue;
      }
      open.add(value);
      const next = this.#ofEveryValue(node).filter(
        (one) => isMapping(one.value) && !this.#finite.has(one.value),
      );
      if (next.some((one) => open.has(one.value))) return true;
      waiting.push(...next);
    }
    return false;
  }

  #ofEveryValue(node: Node): readonly Node[] {
    const [, ...targets] = this.#documents.chain(node).nodes;
    const isAlone = this.#ignoresSiblings && targets.length > 0;
    const beside = isAlone ? [] : schemasIn(node, ALWAYS);
    return [...targets, ...beside];
  }
}

/** The compiler refuses a schema without a value. */
function isNoSchema(value: unknown): boolean {
  return value !== undefined && value !== null && typeof value !== 'boolean' && !isMapping(value);
}

const NO_SCHEMA = [
  'is not read',
  'any value is valid here, and a schema is a mapping such as { type: string }',
] as const;

function schemasIn(node: Node, { one, list, named }: typeof SOMETIMES): readonly Node[] {
  const mappings = named.map((keyword) => child(node, keyword)).filter(({ value }) => isMapping(value));
  return [
    ...one.map((keyword) => child(node, keyword)).filter(({ value }) => !Array.isArray(value)),
    ...list.flatMap((keyword) => itemsOf(child(node, keyword))),
    ...mappings.flatMap((names) => Object.keys(names.value as object).map((name) => child(names, name))),
  ];
}
