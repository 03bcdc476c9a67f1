import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { child, type Documents, type Node, problemAt } from './documents.ts';

/** Values that are data, not a part of the description. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const', 'x-weir']);

/** Mappings whose keys are names of the API. */
const NAMES = new Set(['properties', 'patternProperties', 'headers', 'mapping', 'variables']);

/**
 * Warnings of each `x-weir` that has no effect, such as one in a parameter, in a response or beside a `$ref`.
 *
 * @param read the documents, path items and operations whose `x-weir` was read
 */
export function unreadExtensions(documents: Documents, read: ReadonlySet<unknown>): readonly Problem[] {
  const warnings: Problem[] = [];
  const seen = new Set<unknown>();
  for (const document of documents.all()) {
    search({ document, path: [], value: document.value }, false, { read, seen, warnings });
  }
  return warnings;
}

function search(
  node: Node,
  hasNames: boolean,
  state: { readonly read: ReadonlySet<unknown>; readonly seen: Set<unknown>; readonly warnings: Problem[] },
): void {
  const { value } = node;
  if (typeof value !== 'object' || value === null || state.seen.has(value)) return;
  state.seen.add(value);
  if (!hasNames && isMapping(value) && Object.hasOwn(value, 'x-weir') && !state.read.has(value)) {
    const hint = 'it belongs in an operation, in a path or at the root of the document';
    state.warnings.push(problemAt(child(node, 'x-weir'), 'is not read here', hint));
  }
  for (const [key, one] of Object.entries(value)) {
    // Most parts are texts and numbers, so no node is made of them.
    if (typeof one === 'object' && (hasNames || !DATA.has(key)))
      search(child(node, key), !hasNames && NAMES.has(key), state);
  }
}
