import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { didYouMean } from '../../config/reader/value-messages.ts';
import { ADDITIONAL_METHODS, KINDS_BY_METHOD } from '../listed-operation.ts';
import { child, type Node, problemAt } from './documents.ts';

/** Where OpenAPI 3.2 (section 4.10) has further methods, and the extension that earlier versions have for it. */
const ADDITIONAL = ['additionalOperations', 'x-oai-additionalOperations'];

/** The members of a path that are operations (OpenAPI 3.2 section 4.9). */
const OPERATIONS = [
  ...Object.keys(KINDS_BY_METHOD).map((method) => method.toLowerCase()),
  'options',
  'trace',
];

/** The other members. */
const OTHERS = new Set([...ADDITIONAL, '$ref', 'summary', 'description', 'servers', 'parameters']);

/**
 * The operations of a path by their methods. What is not read becomes a warning: members that a path does not have, and methods that the
 * gateway does not serve, except `options` and `trace`, which have fields of their own and no price.
 *
 * @param layers the path, and what its `$ref` leads to. An operation of an earlier one replaces one with the same method
 */
export function* operationsOf(
  layers: readonly Node[],
  warnings: Problem[],
): Generator<readonly [string, Node]> {
  const earlier = new Map<string, Node>();
  for (const layer of layers) {
    const found = [...operationsIn(layer, warnings)];
    for (const [method, node] of found) {
      const own = earlier.get(method);
      if (own === undefined) yield [method, node];
      else warnings.push(problemAt(own, ...TWICE));
    }
    for (const [method, node] of found) earlier.set(method, node);
  }
}

const TWICE = [
  'is read instead of the operation that the $ref of its path leads to',
  'OpenAPI leaves open which of the two applies: keep one of them',
] as const;

function* operationsIn(item: Node, warnings: Problem[]): Generator<readonly [string, Node]> {
  warnings.push(...unreadMembers(item));
  for (const method of Object.keys(KINDS_BY_METHOD)) {
    const node = child(item, method.toLowerCase());
    if (!isMapping(node.value)) continue;
    if (node.value.$ref !== undefined) warnings.push(problemAt(child(node, '$ref'), ...NO_REFERENCE));
    yield [method, node];
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
    else warnings.push(problemAt(node, ...NO_MAPPING));
  }
}

/** Warnings of members that may be meant as operations: their requests cost what unlisted ones cost. */
function unreadMembers(item: Node): readonly Problem[] {
  if (!isMapping(item.value))
    return [problemAt(item, 'is not read', 'a path is a mapping of its operations')];
  return Object.entries(item.value).flatMap(([key, value]) => {
    if (/^x/i.test(key) || OTHERS.has(key)) return [];
    const node = child(item, key);
    if (OPERATIONS.includes(key)) return isMapping(value) ? [] : [problemAt(node, ...NO_MAPPING)];
    const hint = didYouMean(key.toLowerCase(), OPERATIONS) ?? 'a path has no such member';
    return [problemAt(node, 'is not read', hint)];
  });
}

const NO_REFERENCE = ['is not read', 'OpenAPI has a $ref for a path, and none for an operation'] as const;

const NO_MAPPING = ['is not read', 'an operation is a mapping, which may be empty: {}'] as const;

function isServed(method: string): boolean {
  return Object.hasOwn(KINDS_BY_METHOD, method) || ADDITIONAL_METHODS.has(method);
}
