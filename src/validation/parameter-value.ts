import type { FieldErrors } from '../domain/field-errors.ts';
import { type RawValue, readValue, type Shape } from './texts.ts';

/** A validation error within a value. An empty path refers to the whole value. */
export interface Issue {
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * A compiled schema. Returns undefined for a valid value. Runs in linear time, and returns TOO_COMPLEX if the schema would
 * take longer.
 *
 * @param bytes the size of the value as sent. Default: the largest possible parameter
 */
export type Check = (value: unknown, bytes?: number) => readonly Issue[] | undefined;

/** The result for a value that would take too long to validate. */
export const TOO_COMPLEX: readonly Issue[] = [
  { path: [], message: 'is too deeply nested or too complex to be validated' },
];

/** The rules for the value of a parameter. */
export interface ValueRule {
  readonly name: string;
  readonly shape: Shape;
  readonly check: Check;
}

/** Validates the value of a text. If the schema allows both text and a number, either interpretation may match. */
export function checkValue(rule: ValueRule, tree: RawValue, errors: FieldErrors): void {
  const issues = rule.check(readValue(tree, rule.shape, false));
  if (issues === undefined) return;
  if (rule.check(readValue(tree, rule.shape, true)) === undefined) return;
  addIssues(rule.name, issues, errors);
}

/** Adds the issues as field errors. An issue of `filter` at `status`, `eq` is reported for `filter[status][eq]`. */
export function addIssues(name: string, issues: readonly Issue[], errors: FieldErrors): void {
  for (const { path, message } of issues) {
    errors.add(name + path.map((word) => `[${word}]`).join(''), message);
  }
}
