import { Refusal } from '../../domain/problems.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { OperationTable } from '../../stages/match.ts';
import { normalise } from '../../stages/normalise.ts';
import type { PathProfile } from '../../stages/path/folded-path.ts';

/** A remark about an operation. */
export interface Remark {
  /**
   * `unpriced`: it has no cost. `shadowed`: no request reaches it. `ambiguous`: some requests match another one as well, which is
   * charged differently. `overlapping`: the same, but both are charged alike.
   */
  readonly kind: 'unpriced' | 'shadowed' | 'ambiguous' | 'overlapping';
  readonly text: string;
}

/** Reviews the costs of operations, matching as the gateway does. @returns remarks by operation */
export function reviewCosts(
  operations: readonly ListedOperation[],
  profile: PathProfile,
): ReadonlyMap<ListedOperation, readonly Remark[]> {
  const table = new OperationTable(operations, 'reject', profile.case, profile.trailingSlash);
  const ambiguities = findAmbiguities(operations);
  const review = new Map<ListedOperation, readonly Remark[]>();
  for (const operation of operations) {
    const remarks: Remark[] = [];
    if (operation.costWrittenAt === undefined) remarks.push({ kind: 'unpriced', text: 'no cost is written' });
    const shadow = shadowOf(operation, table, profile);
    if (shadow !== undefined) remarks.push({ kind: 'shadowed', text: shadow });
    const other = ambiguities.get(operation);
    if (other !== undefined) {
      const kind = isChargedAlike(operation, other) ? 'overlapping' : 'ambiguous';
      remarks.push({ kind, text: `some of its paths also match ${nameOf(other)}` });
    }
    if (remarks.length > 0) review.set(operation, remarks);
  }
  return review;
}

/** Why no request reaches this operation, or undefined. */
function shadowOf(
  operation: ListedOperation,
  table: OperationTable,
  profile: PathProfile,
): string | undefined {
  const { method, path } = operation;
  if (/[?#*]/.test(path)) return 'no path has ?, # or * in it';
  const sample = encodeURI(path.replaceAll(/\{[^{}]*\}/g, 'aParameterOfThisPath')).replaceAll('%25', '%');
  const isDeclared = (folded: string) => table.servesSlash(method, folded);
  const target = normalise(sample, profile, isDeclared);
  if (target instanceof Refusal) return target.detail + settingFor(sample, profile);
  const found = table.find(method, target.path, target.folded);
  if (found === operation || isAmong(found, operation)) return undefined;
  return found instanceof Refusal || found === 'free'
    ? 'no request matches it'
    : `${found.id} is matched in its place`;
}

/** Whether a path with several meanings is charged as this operation too. */
function isAmong(found: ReturnType<OperationTable['find']>, { id }: ListedOperation): boolean {
  if (found === 'free' || found instanceof Refusal || found.also === undefined) return false;
  return found.id === id || found.also.some((one) => one.id === id);
}

/** The values of `upstream.pathProfile` for upstreams that take every path literally. */
const LITERAL = [
  ['duplicateSlashes', 'distinct'],
  ['matrixParameters', 'literal'],
  ['asciiForms', 'distinct'],
] as const;

/** The setting that would let this path be served, or an empty text if no single one would. */
function settingFor(sample: string, profile: PathProfile): string {
  const isDeclared = () => true;
  const found = LITERAL.find(
    ([name, value]) => !(normalise(sample, { ...profile, [name]: value }, isDeclared) instanceof Refusal),
  );
  return found === undefined ? '' : ` The setting upstream.pathProfile.${found[0]}: ${found[1]} allows it.`;
}

/** Operations of one method and length that are compared with each other. More than any public description has. */
const MAX_COMPARED = 5_000;

/** Operations that share paths with another one of equal precedence (OpenAPI 3.1 section 4.8.8.2). */
function findAmbiguities(
  operations: readonly ListedOperation[],
): ReadonlyMap<ListedOperation, ListedOperation> {
  const groups = new Map<string, Segmented[]>();
  // A path without parameters takes precedence over all others.
  for (const operation of operations.filter(({ path }) => path.includes('{'))) {
    const segments = operation.path.split('/');
    const key = `${operation.method} ${segments.length}`;
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    if (group.length < MAX_COMPARED) group.push({ operation, segments });
  }
  const found = new Map<ListedOperation, ListedOperation>();
  for (const [one, other] of [...groups.values()].flatMap(ambiguousPairs)) {
    keepWorst(found, one, other);
    keepWorst(found, other, one);
  }
  return found;
}

interface Segmented {
  readonly operation: ListedOperation;
  readonly segments: readonly string[];
}

function ambiguousPairs(
  group: readonly Segmented[],
): readonly (readonly [ListedOperation, ListedOperation])[] {
  return group.flatMap((one, index) =>
    group
      .slice(0, index)
      .filter((earlier) => isAmbiguous(one.segments, earlier.segments))
      .map((earlier) => [one.operation, earlier.operation] as const),
  );
}

/** Prefers an overlap with an operation that is charged differently. */
function keepWorst(
  found: Map<ListedOperation, ListedOperation>,
  operation: ListedOperation,
  other: ListedOperation,
): void {
  const known = found.get(operation);
  if (known === undefined || (isChargedAlike(operation, known) && !isChargedAlike(operation, other)))
    found.set(operation, other);
}

function isChargedAlike(one: ListedOperation, other: ListedOperation): boolean {
  return one.cost === other.cost && one.kind === other.kind && one.access === other.access;
}

function isAmbiguous(one: readonly string[], other: readonly string[]): boolean {
  let oneIsExact = false;
  let otherIsExact = false;
  for (const [index, segment] of one.entries()) {
    const facing = other[index] ?? '';
    const isParameter = segment.includes('{');
    const facesParameter = facing.includes('{');
    if (!isParameter && !facesParameter && segment !== facing) return false;
    if (isParameter && facesParameter && !(isComplete(segment) && isComplete(facing)) && segment !== facing)
      return false;
    oneIsExact ||= !isParameter && facesParameter;
    otherIsExact ||= isParameter && !facesParameter;
  }
  return oneIsExact && otherIsExact;
}

function isComplete(segment: string): boolean {
  return /^\{[^{}]*\}$/.test(segment);
}

function nameOf({ method, path }: ListedOperation): string {
  return `${method} ${path}`;
}
