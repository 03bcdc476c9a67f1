/** Which header fields the gateway forwards, in both directions, and which have credentials. */
import type { Caller } from '../../domain/caller.ts';
import { type Fields, foldName } from '../../domain/field-name.ts';
import { FieldLines, fieldName } from './head/field-lines.ts';
import { type FieldName, NOT_NOMINATED } from './head/field-names.ts';
import type { FieldSection, RequestHead } from './head/field-section.ts';

/** A question about a field. Those that every message is asked are constants: a closure for each takes 120 bytes of heap. */
export type FieldTest = (name: FieldName) => boolean;

/**
 * The end-to-end fields of a request, unchanged and in order.
 *
 * @param isTrusted whether a trusted proxy sent it, whose forwarded headers count
 * @param isHidden whether a field is left out for another reason
 */
export function requestLines(
  head: RequestHead,
  isTrusted: boolean,
  isHidden: FieldTest | undefined,
): FieldLines {
  const isForwarded = isTrusted ? isForwardedForProxy : isForwardedForClient;
  const isLeftOut = either(nominationTest(head.field('connection')), isHidden);
  return new FieldLines(head.fields.linesOf(without(isForwarded, isLeftOut)));
}

function isForwardedForClient({ request }: FieldName): boolean {
  return request === 'forward';
}

function isForwardedForProxy({ request }: FieldName): boolean {
  return request === 'forward' || request === 'trust';
}

function without(test: FieldTest, except: FieldTest | undefined): FieldTest {
  return except === undefined ? test : (name) => test(name) && !except(name);
}

function either(one: FieldTest | undefined, other: FieldTest | undefined): FieldTest | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (name) => one(name) || other(name);
}

/**
 * Adds the id and the trace of a request without spans. The client's `tracestate` belongs to its own valid `traceparent` (W3C Trace
 * Context, section 3.3).
 */
export function addTrace(lines: FieldLines, head: Fields, requestId: string, traceparent: string): void {
  lines.addLines(`X-Request-Id: ${requestId}\r\ntraceparent: ${traceparent}\r\n`);
  const tracestate = head.field('tracestate');
  if (tracestate !== undefined && head.field('traceparent') === traceparent)
    lines.addLines(`tracestate: ${tracestate}\r\n`);
}

/** Adds the identity fields of the caller for the upstream. */
export function addIdentity(lines: FieldLines, { account, organization, principal }: Caller): void {
  lines.check(account);
  lines.check(principal.id);
  lines.addLines(
    `X-Account-Id: ${account}\r\nX-Principal-Id: ${principal.id}\r\nX-Principal-Type: ${principal.type}\r\n`,
  );
  if (organization !== undefined) {
    lines.check(organization);
    lines.addOwn('X-Organization-Id', organization);
  }
}

/** How the fields of a response change on their way to the client. */
export interface ResponseChanges {
  /** The value of a field in which an upstream may name itself. */
  translate(name: FieldName, value: string): string;
  /** Whether the gateway writes Vary itself. */
  readonly isVaried: boolean;
}

/**
 * The end-to-end fields of an upstream's response, in their order; those with an address that is translated come last.
 *
 * @param connection the Connection header, whose nominated fields are not forwarded
 */
export function responseLines(
  fields: FieldSection,
  connection: string | undefined,
  status: number,
  changes?: ResponseChanges,
): FieldLines {
  const isNominated = nominationTest(connection);
  const isReturned = changes === undefined ? isReturnedInPart : isReturnedAsItIs;
  // RFC 9110 section 8.6: a 204 has no length.
  const isWithoutLength = status === 204;
  let isLeftOut = isNominated;
  if (changes?.isVaried === true) isLeftOut = either(isLeftOut, isVary);
  if (isWithoutLength) isLeftOut = either(isLeftOut, isContentLength);
  const lines = new FieldLines(fields.linesOf(without(isReturned, isLeftOut)));
  lines.hasDate = fields.has('date') && isNominated?.(fieldName('date')) !== true;
  lines.hasLength = fields.contentLength !== undefined && !isWithoutLength;
  if (changes === undefined) return lines;
  for (let index = 0; index < fields.size; index++) {
    const name = fields.names[index];
    if (name?.response !== 'address' || isNominated?.(name) === true) continue;
    lines.add(name.text, changes.translate(name, fields.valueAt(index)));
  }
  return lines;
}

function isReturnedAsItIs({ response }: FieldName): boolean {
  return response === 'forward';
}

/** Of an interim response or of trailers, in which no address is translated. */
function isReturnedInPart({ response }: FieldName): boolean {
  return response !== 'drop';
}

function isVary({ lower }: FieldName): boolean {
  return lower === 'vary';
}

function isContentLength({ lower }: FieldName): boolean {
  return lower === 'content-length';
}

/** Whether Connection nominates a field. Its usual values name none. */
function nominationTest(connection: string | undefined): FieldTest | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const names = connection.split(',').map((name) => foldName(name.trim()));
  const nominated = new Set(names.filter((name) => !NOT_NOMINATED.has(name)));
  return ({ folded }) => nominated.has(folded);
}

/** Where a credential besides a bearer token is found. */
export interface CredentialField {
  /** The header field with an API key; undefined for the user name of `Authorization: Basic`. */
  readonly field: string | undefined;
  /** Whether the upstream receives it. */
  readonly forward: boolean;
}

/**
 * The values of a field, in order. A field under another spelling (`X_API_Key`) is read as well: an upstream could
 * take it for the one that was verified.
 */
export function valuesUnderAnySpelling(fields: FieldSection, name: string): readonly string[] {
  const folded = foldName(name);
  return fields.names.flatMap((one, index) => (one.folded === folded ? [fields.valueAt(index)] : []));
}

/** Contract section 5. The scheme may be in any case (RFC 9110 section 11.1); exactly one space follows. */
const SCHEME = /^Bearer /i;
const SCHEME_LENGTH = 'Bearer '.length;

/** The token of an Authorization header; undefined if its scheme is another one. */
export function bearerToken(authorization: string): string | undefined {
  return SCHEME.test(authorization) ? authorization.slice(SCHEME_LENGTH) : undefined;
}

/** The user name of Basic credentials (RFC 7617); undefined for another scheme, or without a user name. */
export function basicUser(authorization: string): string | undefined {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? [];
  const [user = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 1);
  return user === '' ? undefined : user;
}

/**
 * Says which fields have credentials that the upstream should not receive.
 *
 * @param authorization the request's Authorization field
 */
export function hiddenCredentials(
  credentials: readonly CredentialField[],
  authorization: string | undefined,
): FieldTest | undefined {
  if (credentials.length === 0) return undefined;
  const hidden = credentials.filter(({ forward }) => !forward);
  if (hidden.length === 0) return undefined;
  const names = new Set(hidden.map(({ field }) => foldName(field ?? '')));
  const hidesBasic =
    hidden.some(({ field }) => field === undefined) && basicUser(authorization ?? '') !== undefined;
  return ({ folded, lower }) => names.has(folded) || (hidesBasic && lower === 'authorization');
}
