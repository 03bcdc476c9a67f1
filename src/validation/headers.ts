import type { IncomingHttpHeaders } from 'node:http';
import type { FieldErrors } from '../domain/field-errors.ts';
import { checkValue, type ValueRule } from './parameter-value.ts';

/** A header field that an operation declares. */
export interface HeaderRule extends ValueRule {
  readonly lowerName: string;
  readonly isRequired: boolean;
  readonly isList: boolean;
}

/** Finds the declared header fields that are missing or have a wrong value; other fields are not looked at. */
export function checkHeaders(
  rules: readonly HeaderRule[],
  headers: IncomingHttpHeaders,
  errors: FieldErrors,
): void {
  for (const rule of rules) {
    const given = headers[rule.lowerName];
    if (given === undefined) {
      if (rule.isRequired) errors.add(rule.name, 'is missing');
      continue;
    }
    const text = typeof given === 'string' ? given : given.join(', ');
    checkValue(rule, rule.isList ? text.split(',').map((item) => item.trim()) : text, errors);
  }
}
