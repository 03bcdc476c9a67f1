import type { FieldErrors } from '../domain/field-errors.ts';
import { checkValue, type ValueRule } from './parameter-value.ts';

/** A parameter of the path and where its text stands. */
export interface PathRule extends ValueRule {
  /** Which segment of the path holds it, from 0. */
  readonly segment: number;
  /** Its first group is the parameter, where the segment holds more than it. */
  readonly within: RegExp | undefined;
  readonly isList: boolean;
}

/** Finds the parameters of a canonical path that have a wrong value. */
export function checkPath(rules: readonly PathRule[], path: string, errors: FieldErrors): void {
  if (rules.length === 0) return;
  const segments = path.split('/');
  for (const rule of rules) {
    const segment = decoded(segments[rule.segment + 1] ?? '');
    const text = rule.within === undefined ? segment : (rule.within.exec(segment)?.[1] ?? '');
    checkValue(rule, rule.isList ? text.split(',') : text, errors);
  }
}

/** Canonical paths have no malformed escapes; what is no UTF-8 is judged as it stands. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
