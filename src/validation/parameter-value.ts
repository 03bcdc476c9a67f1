import type { FieldErrors } from '../domain/field-errors.ts';
import { type RawValue, readValue, type Shape } from './texts.ts';

/** What is wrong inside of a value; an empty path means the value as a whole. */
export interface Issue {
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * A compiled schema: undefined for a value that satisfies it. It takes time in proportion to the value: TOO_COMPLEX where the
 * schema would take more.
 *
 * @param bytes the size of the value as it was sent; that of the largest parameter unless given
 */
export type Check = (value: unknown, bytes?: number) => readonly Issue[] | undefined;

/** What is wrong with a value that would take too long to judge. */
export const TOO_COMPLEX: readonly Issue[] = [
  { path: [], message: 'is too deeply nested or too complex to be validated' },
];

/** What every value of a parameter must satisfy. */
export interface ValueRule {
  readonly name: string;
  readonly shape: Shape;
  readonly check: Check;
}

/** Judges the value that a text stands for; what may be text or a number passes if it passes as either. */
export function checkValue(rule: ValueRule, tree: RawValue, errors: FieldErrors): void {
  const issues = rule.check(readValue(tree, rule.shape, false));
  if (issues === undefined) return;
  if (rule.check(readValue(tree, rule.shape, true)) === undefined) return;
  addIssues(rule.name, issues, errors);
}

/** `filter` with an issue at `status`, `eq` is an error of the field `filter[status][eq]`. */
export function addIssues(name: string, issues: readonly Issue[], errors: FieldErrors): void {
  for (const { path, message } of issues) {
    errors.add(name + path.map((word) => `[${word}]`).join(''), message);
  }
}
