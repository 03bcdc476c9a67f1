import type { FieldErrors } from '../domain/field-errors.ts';
import { type FieldValues, foldName } from '../domain/field-name.ts';
import { checkValue, type ValueRule } from './parameter-value.ts';

/** A header field that an operation declares. */
export interface HeaderRule extends ValueRule {
  readonly lowerName: string;
  readonly isRequired: boolean;
  readonly isList: boolean;
}

/**
 * Reports declared header fields that are missing, invalid, or sent under a name that an upstream could mistake for theirs,
 * such as `X_Mode` for `X-Mode`. Other fields are ignored.
 */
export function checkHeaders(rules: readonly HeaderRule[], headers: FieldValues, errors: FieldErrors): void {
  if (rules.length > 0) checkNames(rules, headers, errors);
  for (const rule of rules) {
    const given = headers[rule.lowerName];
    if (given === undefined) {
      if (rule.isRequired) errors.add(rule.name, 'is missing');
      continue;
    }
    checkValue(rule, rule.isList ? given.split(',').map((item) => item.trim()) : given, errors);
  }
}

/** Reports fields whose names an upstream could mistake for a declared field. They would bypass validation. */
function checkNames(rules: readonly HeaderRule[], headers: FieldValues, errors: FieldErrors): void {
  for (const name in headers) {
    if (/^[a-z0-9-]+$/.test(name)) continue;
    const folded = foldName(name);
    const rule = rules.find(({ lowerName }) => lowerName !== name && foldName(lowerName) === folded);
    if (rule !== undefined) errors.add(rule.name, `must not be sent as ${name}`);
  }
}
