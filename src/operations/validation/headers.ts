import type { FieldErrors } from '../../domain/field-errors.ts';
import { foldName, type NamedFields } from '../../domain/field-name.ts';
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
export function checkHeaders(rules: readonly HeaderRule[], given: NamedFields, errors: FieldErrors): void {
  if (rules.length > 0) checkNames(rules, given, errors);
  for (const rule of rules) {
    const value = given.field(rule.lowerName);
    if (value === undefined) {
      if (rule.isRequired) errors.add(rule.name, 'is missing');
      continue;
    }
    checkValue(rule, rule.isList ? value.split(',').map((item) => item.trim()) : value, errors);
  }
}

/** Reports fields whose names an upstream could mistake for a declared field. They would bypass validation. */
function checkNames(rules: readonly HeaderRule[], { fields }: NamedFields, errors: FieldErrors): void {
  for (const { lower, folded } of fields.names) {
    if (lower === folded) continue;
    const rule = rules.find(({ lowerName }) => lowerName !== lower && foldName(lowerName) === folded);
    if (rule !== undefined) errors.add(rule.name, `must not be sent as ${lower}`);
  }
}
