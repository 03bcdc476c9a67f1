import type { IncomingHttpHeaders } from 'node:http';
import type { FieldErrors } from '../domain/field-errors.ts';
import { readJson } from './json-text.ts';
import { addIssues, type Check, TOO_COMPLEX } from './parameter-value.ts';

/** What a request body must satisfy. */
export interface BodyRules {
  readonly isRequired: boolean;
  /** By media type in lower case, ranges such as `application/*` included; undefined for one that is not JSON. */
  readonly byMediaType: ReadonlyMap<string, JsonRule | undefined>;
  /** The most that is read of a body before it is judged. */
  readonly maxBytes: number;
}

interface JsonRule {
  /** Tells the first issue. */
  readonly check: Check;
  /** Tells all issues; a large body full of them would keep the gateway busy for long. */
  readonly checkAll: Check;
}

/** Bodies up to this size get all their issues told; larger ones the first. */
const ALL_ISSUES_BYTES = 16 * 1024;

/** How the body is to be treated, judged by its header fields alone. */
export type BodyPlan =
  | { readonly kind: 'stream' | 'refused' | 'too-large' }
  | { readonly kind: 'read'; readonly rule: JsonRule };

export function planBody(rules: BodyRules, headers: IncomingHttpHeaders, errors: FieldErrors): BodyPlan {
  if (!hasBody(headers)) {
    if (!rules.isRequired) return { kind: 'stream' };
    errors.add('body', 'is missing');
    return { kind: 'refused' };
  }
  const mediaType = (headers['content-type']?.split(';', 1)[0] ?? '').trim().toLowerCase();
  const declared = mediaTypesFor(mediaType).find((range) => rules.byMediaType.has(range));
  if (declared === undefined) {
    errors.add('Content-Type', `must be ${[...rules.byMediaType.keys()].join(' or ')}`);
    return { kind: 'refused' };
  }
  const rule = rules.byMediaType.get(declared);
  if (rule === undefined) return { kind: 'stream' };
  if (!isUtf8(headers['content-type'] ?? '')) {
    errors.add('Content-Type', 'must name no other charset than UTF-8');
    return { kind: 'refused' };
  }
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    errors.add('Content-Encoding', 'is not supported here: the body is validated as it is sent');
    return { kind: 'refused' };
  }
  if (Number(headers['content-length'] ?? 0) > rules.maxBytes) return { kind: 'too-large' };
  return { kind: 'read', rule };
}

/**
 * Whether all charsets that a JSON media type names are UTF-8, in which the body is judged: JSON has no other (RFC 8259
 * section 8.1). Readers differ on what is not written as RFC 9110 wants it, and some look for `charset` anywhere, so all else
 * that has the word counts as another charset.
 */
function isUtf8(contentType: string): boolean {
  const charsets = contentType.split(';').filter((part, index) => index > 0 && /charset/i.test(part));
  return charsets.every((parameter) => /^[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*$/i.test(parameter));
}

/** Finds everything that is wrong with a JSON body. */
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

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && Number(length) > 0);
}

/** The names under which a document may have declared a media type, the most exact first. */
function mediaTypesFor(mediaType: string): readonly string[] {
  return [mediaType, `${mediaType.split('/', 1)[0]}/*`, '*/*'];
}
