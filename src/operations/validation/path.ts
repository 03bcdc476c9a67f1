import type { FieldErrors } from '../../domain/field-errors.ts';
import { checkValue, type ValueRule } from './parameter-value.ts';

/** A path parameter and its position. */
export interface PathRule extends ValueRule {
  /** Index of the segment that contains it, from 0. */
  readonly segment: number;
  /** If the segment has other text, a regular expression whose first group is the parameter. */
  readonly within: RegExp | undefined;
  readonly isList: boolean;
}

/** Reports the invalid parameters of a canonical path. */
export function checkPath(rules: readonly PathRule[], path: string, errors: FieldErrors): void {
  if (rules.length === 0) return;
  const segments = path.split('/');
  for (const rule of rules) {
    const segment = decoded(segments[rule.segment + 1] ?? '');
    const text = rule.within === undefined ? segment : (rule.within.exec(segment)?.[1] ?? '');
    checkValue(rule, rule.isList ? text.split(',') : text, errors);
  }
}

/** Canonical paths have no malformed escapes. Escapes that are not UTF-8 are validated undecoded. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
