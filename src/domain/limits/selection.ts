import type { Access, OperationKind } from '../operation.ts';

/** The operations that a limit counts. What is given must all apply; a list applies if one of its entries does. */
export interface Selection {
  readonly kind?: OperationKind;
  /** Ids, or a method and a path, in which `*` is one segment and a `**` at the end any number of them. */
  readonly operations?: readonly string[];
  /** Tags of the OpenAPI document. */
  readonly tags?: readonly string[];
}

/**
 * An operation, or several that a request may run, as limits see it. A request without a listed operation has neither a path nor tags.
 */
export interface Chargeable {
  /** `operationId`, or `METHOD path` where the document names none. */
  readonly id: string;
  readonly kind: OperationKind;
  readonly access: Access;
  /** Whether only a Person may send the request, which may run an operation of any caller as well. It is charged for both. */
  readonly isForBoth?: boolean;
  /** Upper case. */
  readonly method?: string;
  /** As it is declared: `/v3/payees/{payeeId}`. */
  readonly path?: string;
  readonly tags?: readonly string[];
  /** Other operations that the request may run. Their limits count it as well. */
  readonly also?: readonly Chargeable[];
}

/** Whether a limit counts requests for an operation, or for one that they may run as well. */
export function selects(selection: Selection, operation: Chargeable): boolean {
  return (
    selectsOne(selection, operation) || operation.also?.some((one) => selectsOne(selection, one)) === true
  );
}

function selectsOne(selection: Selection, operation: Chargeable): boolean {
  const { kind, operations, tags } = selection;
  if (kind !== undefined && kind !== operation.kind) return false;
  if (operations !== undefined && !operations.some((one) => isNamed(one, operation))) return false;
  return tags === undefined || tags.some((tag) => operation.tags?.includes(tag));
}

const METHOD_AND_PATH = /^([A-Z]+|\*) (\/.*)$/;

/** Whether an entry of `operations` stands for this operation. */
export function isNamed(entry: string, { id, method, path }: Chargeable): boolean {
  const [, ofMethod, ofPath = ''] = METHOD_AND_PATH.exec(entry) ?? [];
  if (ofMethod === undefined) return entry === id;
  if (method === undefined || path === undefined) return false;
  return (ofMethod === '*' || ofMethod === method) && isPathNamed(ofPath.split('/'), path.split('/'));
}

/** Any parameter stands for any other, whatever their names. */
function isPathNamed(pattern: readonly string[], path: readonly string[]): boolean {
  const rest = pattern.at(-1) === '**' ? pattern.length - 1 : undefined;
  if (rest === undefined ? path.length !== pattern.length : path.length < rest) return false;
  return pattern
    .slice(0, rest)
    .every((segment, index) => segment === '*' || anonymous(segment) === anonymous(path[index] ?? ''));
}

function anonymous(segment: string): string {
  return segment.replaceAll(/\{[^{}]*\}/g, '{}');
}
