import type { FieldErrors } from '../../domain/field-errors.ts';
import type { Fields } from '../../domain/field-name.ts';
import { readJson } from './json-text.ts';
import { addIssues, type Check, TOO_COMPLEX } from './parameter-value.ts';

/** The rules for a request body. */
export interface BodyRules {
  readonly isRequired: boolean;
  /**
   * By media type in lower case, including ranges such as `application/*` and `application/*+json`, and types with parameters such as
   * `application/json;v=1`. Undefined for types that are never JSON.
   */
  readonly byMediaType: ReadonlyMap<string, JsonRule | undefined>;
  /** Maximum size of a body that is validated. */
  readonly maxBytes: number;
}

/** The rule for a JSON body of one media type. */
export interface JsonRule {
  /** Reports the first issue. */
  readonly check: Check;
  /** Reports all issues. Used only for small bodies, because collecting many issues takes long. */
  readonly checkAll: Check;
}

/** Maximum size of a body for which all issues are reported. For larger bodies only the first issue is. */
const ALL_ISSUES_BYTES = 16 * 1024;

/** How to handle the body, based on the request headers. */
export function planBody(
  rules: BodyRules,
  given: Fields,
  errors: FieldErrors,
):
  | { readonly kind: 'stream' | 'refused' | 'too-large' }
  | { readonly kind: 'read'; readonly rule: JsonRule } {
  if (!hasBody(given)) {
    if (!rules.isRequired) return { kind: 'stream' };
    errors.add('body', 'is missing');
    return { kind: 'refused' };
  }
  const contentType = given.field('content-type') ?? '';
  const mediaType = typeOf(contentType);
  const declared = mediaTypesFor(contentType, mediaType).find((range) => rules.byMediaType.has(range));
  if (declared === undefined) {
    errors.add('Content-Type', `must be ${[...rules.byMediaType.keys()].join(' or ')}`);
    return { kind: 'refused' };
  }
  const rule = ruleFor(rules, declared, mediaType);
  if (rule === undefined) return { kind: 'stream' };
  if (!isUtf8(contentType)) {
    errors.add('Content-Type', 'must not name a charset other than UTF-8');
    return { kind: 'refused' };
  }
  const coding = given.field('content-encoding');
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    errors.add('Content-Encoding', 'is not supported here: the body is validated as it is sent');
    return { kind: 'refused' };
  }
  if (Number(given.field('content-length') ?? 0) > rules.maxBytes) return { kind: 'too-large' };
  return { kind: 'read', rule };
}

/**
 * Whether every charset in the content type is UTF-8, the only encoding of JSON (RFC 8259 section 8.1). Any other parameter
 * that contains `charset` counts as a different charset, because parsers differ in how they read malformed parameters.
 */
function isUtf8(contentType: string): boolean {
  const charsets = contentType.split(';').filter((part, index) => index > 0 && /charset/i.test(part));
  return charsets.every((parameter) => /^[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*$/i.test(parameter));
}

/** Validates a JSON body. */
export function checkBody(rule: JsonRule, body: Buffer, errors: FieldErrors): void {
  const read = readJson(body);
  if ('problem' in read) {
    errors.add('body', read.problem);
    return;
  }
  const { value } = read;
  const first = rule.check(value, body.length);
  if (first === undefined) return;
  const all = body.length <= ALL_ISSUES_BYTES ? rule.checkAll(value, body.length) : undefined;
  const issues = all === undefined || all === TOO_COMPLEX ? first : all;
  for (const { path, message } of issues) {
    if (path.length === 0) errors.add('body', message);
    else addIssues(path[0] ?? '', [{ path: path.slice(1), message }], errors);
  }
}

function hasBody(given: Fields): boolean {
  const length = given.field('content-length');
  return given.field('transfer-encoding') !== undefined || (length !== undefined && Number(length) > 0);
}

/** A range also declares types that are not JSON. A body without a type is validated, because upstreams may read it as JSON. */
function ruleFor(rules: BodyRules, declared: string, mediaType: string): JsonRule | undefined {
  return mediaType === '' || isJson(mediaType) ? rules.byMediaType.get(declared) : undefined;
}

/** The media type of a `Content-Type`, in lower case and without its parameters. */
export function typeOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** The media type of a `Content-Type` with its parameters in one form, without a charset, which every type may have. */
export function exactTypeOf(contentType: string): string {
  const [, ...parameters] = contentType.toLowerCase().split(';');
  const plain = parameters.map((parameter) => parameter.replaceAll(/["\s]/g, ''));
  const own = plain.filter((parameter) => parameter !== '' && !parameter.startsWith('charset='));
  return [typeOf(contentType), ...own.sort()].join(';');
}

/** Whether a media type in lower case is JSON: its subtype is `json` or has the suffix `+json` (RFC 6839 section 3.1). */
export function isJson(mediaType: string): boolean {
  return mediaType.endsWith('/json') || (mediaType.endsWith('+json') && mediaType.includes('/'));
}

/** The keys under which a document may declare a media type, most specific first. */
function mediaTypesFor(contentType: string, mediaType: string): readonly string[] {
  const range = `${mediaType.split('/', 1)[0]}/*`;
  const suffix = /\+[^+]*$/.exec(mediaType)?.[0] ?? '';
  return [exactTypeOf(contentType), mediaType, range + suffix, range, '*/*'];
}
