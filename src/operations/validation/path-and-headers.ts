import type { FieldErrors } from '../../domain/field-errors.ts';
import { foldName, type NamedFields } from '../../domain/field-name.ts';
import { checkJson, checkValue, type ValueRule } from './parameter-value.ts';

/** A value in one text. */
interface TextRule extends ValueRule {
  /** Whether the text is a list with commas. */
  readonly isList: boolean;
  /** Whether the text is JSON. */
  readonly isJson: boolean;
}

/** A path parameter and its position. */
export interface PathRule extends TextRule {
  /** Index of the segment that contains it, from 0. */
  readonly segment: number;
  /** If the segment has other text, a regular expression whose first group is the parameter. */
  readonly within: RegExp | undefined;
}

/** Reports the invalid parameters of a canonical path. */
export function checkPath(rules: readonly PathRule[], path: string, errors: FieldErrors): void {
  if (rules.length === 0) return;
  const segments = path.split('/');
  for (const rule of rules) {
    const segment = decoded(segments[rule.segment + 1] ?? '');
    const text = rule.within === undefined ? segment : (rule.within.exec(segment)?.[1] ?? '');
    if (rule.isJson) checkJson(rule, text, errors);
    else if (rule.isList) checkValue(rule, text.split(','), errors, text);
    else checkValue(rule, text, errors);
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

/** A header field that an operation declares. */
export interface HeaderRule extends TextRule {
  readonly lowerName: string;
  readonly isRequired: boolean;
}

/**
 * Reports declared header fields that are missing, invalid, or sent under a name that an upstream could mistake for theirs,
 * such as `X_Mode` for `X-Mode`. Other fields are ignored.
 */
export function checkHeaders(rules: readonly HeaderRule[], given: NamedFields, errors: FieldErrors): void {
  if (rules.length > 0) checkNames(rules, given, errors);
  for (const rule of rules) {
    const value = given.field(rule.lowerName);
    if (value === undefined) {
      if (rule.isRequired) errors.add(rule.name, 'is missing');
      continue;
    }
    checkHeader(rule, value, errors);
  }
}

function checkHeader(rule: HeaderRule, value: string, errors: FieldErrors): void {
  if (rule.isJson) checkJson(rule, value, errors);
  else if (rule.isList) checkValue(rule, trimmedItems(value), errors, value);
  else checkValue(rule, value, errors);
}

function trimmedItems(value: string): string[] {
  return value.split(',').map((item) => item.trim());
}

/** Reports fields whose names an upstream could mistake for a declared field. They would bypass validation. */
function checkNames(rules: readonly HeaderRule[], { fields }: NamedFields, errors: FieldErrors): void {
  for (const { lower, folded } of fields.names) {
    if (lower === folded) continue;
    const rule = rules.find(({ lowerName }) => lowerName !== lower && foldName(lowerName) === folded);
    if (rule !== undefined) errors.add(rule.name, `must not be sent as ${lower}`);
  }
}
