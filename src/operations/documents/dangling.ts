import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { child, type Documents, type Node } from './documents.ts';

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
