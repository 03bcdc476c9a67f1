import type { Problem } from '../config/problem.ts';
import type { Access } from '../domain/operation.ts';
import { child, type Node, problemAt } from './documents.ts';
import type { Extension } from './extension.ts';

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

/** A list with an empty requirement (`[{}]`) makes a token optional. Only an empty list says that there is none. */
function isEmptyList(security: unknown): boolean {
  return Array.isArray(security) && security.length === 0;
}

function isOwn(node: Node | undefined, operation: Node): boolean {
  const { document, path } = operation;
  return node?.document === document && path.every((word, index) => node.path[index] === word);
}
