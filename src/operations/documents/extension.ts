import type { Problem } from '../../config/problem.ts';
import { check } from '../../config/reader/schema-check.ts';
import { asNode, isMapping, type SchemaNode } from '../../config/reader/schema-node.ts';
import { nearest } from '../../config/reader/value-messages.ts';
import {
  MAX_COST,
  refundOnSchema,
  reserveSchema,
  settleSchema,
} from '../../config/settings/settlement-settings.ts';
import type { Access } from '../../domain/operation.ts';
import { type GivenSettlement, mostProblem, NOT_CHARGED, sourceProblem } from '../given-settlement.ts';
import { DEFAULT_COST, type ListedOperation } from '../listed-operation.ts';
import { child, type Node, problemAt } from './documents.ts';

/** The settings of an `x-weir` for the operations below it. */
export interface Extension extends GivenSettlement {
  readonly cost?: number;
  /** The location of `cost`. */
  readonly costNode?: Node;
  readonly personOnly?: boolean;
  readonly public?: boolean;
  /** The location of `public`. */
  readonly publicNode?: Node;
  readonly kind?: 'read' | 'write';
  readonly validation?: ListedOperation['validation'] | undefined;
  /** The location of `reserve.most`. */
  readonly mostNode?: Node;
}

/** The accepted values of `validate`. */
const VALIDATIONS = new Map<unknown, ListedOperation['validation']>([
  [false, 'none'],
  [true, 'parameters'],
  ['parameters', 'parameters'],
  ['body', 'body'],
]);

const oneOf = (values: readonly unknown[]) => ({ anyOf: values.map((value) => ({ const: value })) });

const SETTLEMENT = {
  reserve: asNode(reserveSchema),
  settle: asNode(settleSchema),
  refundOn: asNode(refundOnSchema('')),
};

/** The schema of `x-weir`. A key that is given needs a value. */
function schemaOf(maxCost: number, given: readonly string[]): SchemaNode {
  const expects = `a whole number from 1 to ${maxCost}`;
  return {
    required: given,
    properties: {
      cost: { type: 'integer', minimum: 0, maximum: maxCost, expects },
      personOnly: { type: 'boolean' },
      public: { type: 'boolean' },
      kind: oneOf(['read', 'write']),
      validate: { ...oneOf([...VALIDATIONS.keys()]), expects: 'false, parameters or body' },
      ...SETTLEMENT,
    },
  };
}

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
  const { validate, ...settings } = validSettings(node, node.value, isSettled(above), maxCost, problems);
  return {
    ...above,
    ...settings,
    ...('cost' in settings && { costNode: child(node, 'cost') }),
    ...('public' in settings && { publicNode: child(node, 'public') }),
    ...(validate !== undefined && { validation: VALIDATIONS.get(validate) }),
    ...('reserve' in settings && { mostNode: child(child(node, 'reserve'), 'most') }),
  };
}

/** The settings of an `x-weir` without those that have a problem. */
function validSettings(
  node: Node,
  written: Readonly<Record<string, unknown>>,
  isSettledAbove: boolean,
  maxCost: number,
  problems: Problem[],
): Readonly<Record<string, unknown>> {
  const given = { ...written };
  const isOpen = isSettledAbove || isSettled(given);
  const schema = schemaOf(isOpen ? MAX_COST : maxCost, Object.keys(given));
  for (const { path, message, hint } of check(schema, written).findings) {
    const [key = ''] = path;
    const isTooHigh = key === 'cost' && Number(written.cost) > maxCost && !isOpen;
    const advice = isTooHigh ? 'operations.maxCost sets the maximum' : hint;
    problems.push(problemAt(path.reduce(child, node), message, advice));
    delete given[key];
  }
  const problem = sourceProblem(given);
  if (problem !== undefined) problems.push(problemAt(child(node, 'settle'), problem.message, problem.hint));
  return given;
}

/** Whether the cost may be more than `operations.maxCost`. */
function isSettled({ reserve, settle }: Extension | Readonly<Record<string, unknown>>): boolean {
  return reserve !== undefined || settle !== undefined;
}

const SIMILAR = /^x[-_]?w/i;

/** Warnings of keys such as `x-wier`: a cost in one of them would be lost. */
export function misspellings(owner: Node): readonly Problem[] {
  if (!isMapping(owner.value)) return [];
  const similar = Object.keys(owner.value).filter(
    (key) => key !== 'x-weir' && SIMILAR.test(key) && nearest(key, ['x-weir']) !== undefined,
  );
  return similar.map((key) => problemAt(child(owner, key), 'is not read', 'did you mean "x-weir"?'));
}

/** The problems of an operation that only its settings together have. */
export const BOTH = 'an operation is either public or personOnly';
export const FREE = [
  'only a public operation may cost 0',
  'set `public: true`, or a cost of at least 1',
] as const;

/**
 * Who may call an operation. `x-weir: { public: false }` at any level keeps it closed. Otherwise it is public if its own `x-weir`
 * says so, if its `security` is an empty list, or if it has no `security` and the path or document above it is public.
 *
 * @param operation the operation
 * @param root the document's root, whose `security` applies to operations without one (OpenAPI 3.1 section 4.8.1)
 * @param extension the `x-weir` of the operation, merged with those above it
 */
export function readAccess(operation: Node, root: Node, extension: Extension, problems: Problem[]): Access {
  const { personOnly = false, cost } = extension;
  const isDeclared = extension.public === true && isOwn(extension.publicNode, operation);
  if (isDeclared && personOnly) {
    problems.push(problemAt(operation, BOTH));
  }
  const isPublic = extension.public !== false && (isDeclared || isOpen(operation, root, extension));
  const access = personOnly ? 'person' : isPublic ? 'public' : 'caller';
  if (cost === 0 && access !== 'public') {
    problems.push(problemAt(extension.costNode ?? operation, ...FREE));
  }
  return access;
}

/** An operation's own `security` takes precedence over what it inherits. */
function isOpen(operation: Node, root: Node, extension: Extension): boolean {
  const security = child(operation, 'security').value;
  if (security !== undefined) return isEmptyList(security);
  return extension.public === true || isEmptyList(child(root, 'security').value);
}

/** A list with an empty requirement (`[{}]`) makes a token optional. Only an empty list means that no token is needed. */
function isEmptyList(security: unknown): boolean {
  return Array.isArray(security) && security.length === 0;
}

/** Reports what the settlement and the cost of an operation have only together. */
export function reviewSettlement(operation: Node, extension: Extension, problems: Problem[]): void {
  const { cost = DEFAULT_COST, mostNode } = extension;
  const problem = mostProblem(extension, cost);
  if (problem !== undefined) problems.push(problemAt(mostNode ?? operation, problem.message, problem.hint));
  if (cost > 0) return;
  // What it inherits is meant for the others.
  const own = child(operation, 'x-weir');
  for (const setting of [child(own, 'reserve'), child(own, 'settle')]) {
    if (setting.value !== undefined) problems.push(problemAt(setting, NOT_CHARGED.message, NOT_CHARGED.hint));
  }
}

function isOwn(node: Node | undefined, operation: Node): boolean {
  const { document, path } = operation;
  return node?.document === document && path.every((word, index) => node.path[index] === word);
}
