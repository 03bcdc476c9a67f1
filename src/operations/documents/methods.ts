import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { ADDITIONAL_METHODS, KINDS_BY_METHOD } from '../listed-operation.ts';
import { child, type Node, problemAt } from './documents.ts';

/** Where OpenAPI 3.2 (section 4.10) has further methods, and the extension that earlier versions have for it. */
const ADDITIONAL = ['additionalOperations', 'x-oai-additionalOperations'];

/**
 * The operations of a path by their methods. Methods that the gateway does not serve become a warning, except `options` and `trace`,
 * which have fields of their own and no price.
 */
export function* operationsOf(item: Node, warnings: Problem[]): Generator<readonly [string, Node]> {
  for (const method of Object.keys(KINDS_BY_METHOD)) {
    const node = child(item, method.toLowerCase());
    if (isMapping(node.value)) yield [method, node];
  }
  for (const name of ADDITIONAL) yield* additionalOf(child(item, name), warnings);
}

function* additionalOf(additional: Node, warnings: Problem[]): Generator<readonly [string, Node]> {
  if (!isMapping(additional.value)) return;
  for (const method of Object.keys(additional.value)) {
    const node = child(additional, method);
    if (!isServed(method))
      warnings.push(problemAt(node, 'is not read', 'the gateway does not serve this method'));
    else if (isMapping(node.value)) yield [method, node];
  }
}

function isServed(method: string): boolean {
  return Object.hasOwn(KINDS_BY_METHOD, method) || ADDITIONAL_METHODS.has(method);
}
