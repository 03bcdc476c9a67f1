import type { ErrorObject } from 'ajv';
import type { Issue } from '../parameter-value.ts';

/** Errors that are reported for the property that they name, not for the object that has or lacks it. */
const MESSAGES: ReadonlyMap<string, string> = new Map([
  ['required', 'is missing'],
  ['additionalProperties', 'is not a known field'],
  ['unevaluatedProperties', 'is not a known field'],
]);

/**
 * Longer paths are cut here. A field is cut after 200 characters, and two characters of a path make at least one of its field, so a cut
 * path still fills a field.
 */
const MAX_PATH = 450;

/** Further allowed values are not listed, to keep the response small. */
const MAX_VALUES = 200;

export function toIssue(error: ErrorObject): Issue {
  const { instancePath } = error;
  const path = instancePath
    .slice(0, MAX_PATH)
    .split('/')
    .slice(1)
    .map((word) => word.replaceAll('~1', '/').replaceAll('~0', '~'));
  const property = propertyOf(error);
  return { path: property === undefined ? path : [...path, property], message: wordsOf(error) };
}

function wordsOf({ keyword, params, message = 'is not valid' }: ErrorObject): string {
  if (keyword === 'false schema') return 'is not allowed';
  if (keyword === 'enum') return allowed(params.allowedValues);
  if (keyword === 'type' && Array.isArray(params.type)) return `must be ${params.type.join(' or ')}`;
  return MESSAGES.get(keyword) ?? message;
}

function allowed(values: readonly unknown[]): string {
  const listed = values.slice(0, MAX_VALUES).join(', ');
  return `must be one of ${listed}${values.length > MAX_VALUES ? ', ...' : ''}`;
}

/** A text that is the same for all errors that are reported for one field. */
export function placeOf(error: ErrorObject): string {
  const path = error.instancePath.slice(0, MAX_PATH);
  return path.length === MAX_PATH ? path : `${path}\n${propertyOf(error) ?? ''}`;
}

/** The property that an error is reported for. */
function propertyOf({ keyword, params }: ErrorObject): string | undefined {
  if (!MESSAGES.has(keyword)) return undefined;
  return params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty;
}
