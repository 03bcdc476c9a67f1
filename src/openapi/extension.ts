import type { Problem } from '../config/problem.ts';
import { described, nearest } from '../config/reader/messages.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { child, type Node, problemAt } from './documents.ts';
import type { Validation } from './listed-operation.ts';

/** The settings of an `x-weir` for the operations below it. */
export interface Extension {
  readonly cost?: number;
  /** The location of `cost`. */
  readonly costNode?: Node;
  readonly personOnly?: boolean;
  readonly public?: boolean;
  /** The location of `public`. */
  readonly publicNode?: Node;
  readonly kind?: 'read' | 'write';
  readonly validation?: Validation;
}

const KNOWN = ['cost', 'personOnly', 'public', 'kind', 'validate'];

/**
 * The `x-weir` of a document, a path or an operation, merged with the one above it. The innermost value wins.
 *
 * @param owner the document, path item or operation that may have an `x-weir`
 * @param maxCost the maximum cost of an operation
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
    ...readPublic(child(node, 'public'), problems),
    ...readKind(child(node, 'kind'), problems),
    ...readValidate(child(node, 'validate'), problems),
  };
}

function unknownKey(node: Node, key: string): Problem {
  const suggestion = nearest(key, KNOWN);
  const hint =
    suggestion === undefined ? `expected one of ${KNOWN.join(', ')}` : `did you mean "${suggestion}"?`;
  return problemAt(node, `unknown key "${key}"`, hint);
}

function readCost(node: Node, maxCost: number, problems: Problem[]): Extension {
  const { value: cost } = node;
  if (cost === undefined) return {};
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 0 && cost <= maxCost) {
    return { cost, costNode: node };
  }
  const hint = typeof cost === 'number' && cost > maxCost ? 'operations.maxCost sets the maximum' : undefined;
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

function readPublic(node: Node, problems: Problem[]): Extension {
  if (node.value === undefined) return {};
  if (typeof node.value === 'boolean') return { public: node.value, publicNode: node };
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

/** The accepted values of `validate`. */
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
