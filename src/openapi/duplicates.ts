import type { Problem } from '../config/problem.ts';
import { formatPlace } from '../config/problem.ts';
import type { ListedOperation } from './listed-operation.ts';

/** One problem for each operation that matches the same requests as an earlier one, which would make its cost ambiguous. */
export function findDuplicates(operations: readonly ListedOperation[]): readonly Problem[] {
  const first = new Map<string, ListedOperation>();
  const problems: Problem[] = [];
  for (const operation of operations) {
    const { method, path, writtenAt } = operation;
    const shape = `${method} ${path.replaceAll(/\{[^{}]*\}/g, '{}')}`;
    const other = first.get(shape);
    if (other === undefined) {
      first.set(shape, operation);
      continue;
    }
    const line = writtenAt.line();
    problems.push({
      source: writtenAt.file,
      ...(line === undefined ? {} : { line }),
      path: writtenAt.path,
      message: `${method} ${path} matches the same requests as ${method} ${other.path} at ${formatPlace(other.writtenAt)}`,
      hint: 'keep one of them',
    });
  }
  return problems;
}
