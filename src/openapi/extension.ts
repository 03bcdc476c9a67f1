import type { Problem } from '../config/problem.ts';
import { described, nearest } from '../config/reader/messages.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { child, type Node, problemAt } from './documents.ts';
import type { Validation } from './listed-operation.ts';

/** What an `x-weir` says of the operations below it. */
export interface Extension {
  readonly cost?: number;
  /** Where `cost` is written. */
  readonly costNode?: Node;
  readonly personOnly?: boolean;
  readonly kind?: 'read' | 'write';
  readonly validation?: Validation;
}

const KNOWN = ['cost', 'personOnly', 'kind', 'validate'];

/**
 * The `x-weir` of a document, a path or an operation, laid over the one above it: the nearest word counts.
 *
 * @param owner the document, path item or operation that may carry an `x-weir`
 * @param maxCost the dearest that an operation may be
 */
export function readExtension(
  owner: Node,
  above: Extension,
  maxCost: number,
  problems: Problem[],
): Extension {
  const node = child(owner, 'x-weir');
  if (node.value === undefined) return above;
  if (!isMapping(node.value)) {
    problems.push(problemAt(node, 'must be a mapping such as {cost: 5}'));
    return above;
  }
  for (const key of Object.keys(node.value)) {
    if (!KNOWN.includes(key)) problems.push(unknownKey(child(node, key), key));
  }
  return {
    ...above,
    ...readCost(child(node, 'cost'), maxCost, problems),
    ...readPersonOnly(child(node, 'personOnly'), problems),
    ...readKind(child(node, 'kind'), problems),
    ...readValidate(child(node, 'validate'), problems),
  };
}

function unknownKey(node: Node, key: string): Problem {
  const suggestion = nearest(key, KNOWN);
  const hint = suggestion === undefined ? `known are ${KNOWN.join(', ')}` : `did you mean "${suggestion}"?`;
  return problemAt(node, `unknown key "${key}"`, hint);
}

function readCost(node: Node, maxCost: number, problems: Problem[]): Extension {
  const { value: cost } = node;
  if (cost === undefined) return {};
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 1 && cost <= maxCost) {
    return { cost, costNode: node };
  }
  const hint = typeof cost === 'number' && cost > maxCost ? 'operations.maxCost sets the top' : undefined;
  problems.push(
    problemAt(node, `must be a whole number from 1 to ${maxCost}, is ${described(cost, {})}`, hint),
  );
  return {};
}

function readPersonOnly(node: Node, problems: Problem[]): Extension {
  if (node.value === undefined) return {};
  if (typeof node.value === 'boolean') return { personOnly: node.value };
  problems.push(problemAt(node, `must be true or false, is ${described(node.value, {})}`));
  return {};
}

function readKind(node: Node, problems: Problem[]): Extension {
  const { value } = node;
  if (value === undefined) return {};
  if (value === 'read' || value === 'write') return { kind: value };
  problems.push(problemAt(node, `must be read or write, is ${described(value, {})}`));
  return {};
}

/** What the document may write, and what it means. */
const VALIDATIONS = new Map<unknown, Validation>([
  [false, 'none'],
  [true, 'parameters'],
  ['parameters', 'parameters'],
  ['body', 'body'],
]);

function readValidate(node: Node, problems: Problem[]): Extension {
  if (node.value === undefined) return {};
  const validation = VALIDATIONS.get(node.value);
  if (validation !== undefined) return { validation };
  problems.push(problemAt(node, `must be false, parameters or body, is ${described(node.value, {})}`));
  return {};
}
