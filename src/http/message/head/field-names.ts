/**
 * How each header field is handled, by its name: in requests and in responses, for each of their readers. CGI and WSGI servers make the same
 * variable from `X-Account-Id`, `X_Account_Id` and `X.Account.Id`, so names are folded before they are compared.
 */
import { foldName } from '../../../domain/field-name.ts';
import { isToken } from '../grammar.ts';

/** Fields of one connection, never forwarded (RFC 9110 section 7.6.1, and those that Node owns). */
export const HOP_BY_HOP = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Fields that only the gateway may set. */
export const GATEWAY_OWNED = ['ratelimit', 'ratelimit-policy', 'service-ratelimit-mode', 'x-request-id'];

/** Fields with the identity of the caller, which the gateway sends to the upstream. */
export const IDENTITY_FIELDS = [
  'x-account-id',
  'x-client-certificate-subject',
  'x-organization-id',
  'x-principal-id',
  'x-principal-type',
];

const NOT_SENT_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...GATEWAY_OWNED,
  ...IDENTITY_FIELDS,
  // The upstream client frames the body itself.
  'content-length',
  'expect',
  'host',
  // CGI passes it to programs as HTTP_PROXY, which sets their proxy (CVE-2016-5385).
  'proxy',
  // Sent with the trace that the log line names.
  'traceparent',
  'tracestate',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

const NOT_SENT_BACK: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...GATEWAY_OWNED]);

/** Response fields in which an upstream may name itself. */
const WITH_ADDRESS: ReadonlySet<string> = new Set(['location', 'content-location', 'set-cookie']);

/**
 * Names, without separators, by which frameworks run another path than the request line's, which was charged: `X-Original-URL`,
 * `X-Rewrite-URI`, Traefik's `X-Replaced-Path` and the like, and what gunicorn takes its PATH_INFO from.
 */
const PATH_OVERRIDE =
  /(?:original|override|replaced|rewrite|rewritten|unencoded)(?:path|uri|url)$|^x?request(?:uri|url)$|^(?:orig)?pathinfo$|^scriptname$/;

/** Names, without separators, by which frameworks run another method: `X-HTTP-Method-Override`, `X-Original-Method`. */
const METHOD_OVERRIDE =
  /(?:method|verb)overrides?$|^x?(?:original|httpoverride|override|rewrite|tunnel|tunneled)(?:method|verb)$|^x(?:http|request)(?:method|verb)$/;

/** Fields that the gateway or its upstream reads: no Connection header can remove them. */
export const NOT_NOMINATED: ReadonlySet<string> = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'idempotency-key',
  'x-service-account',
]);

/** Fields that may occur only once, because an upstream could read the second instead of the first; spelt as usual. */
const ONCE: ReadonlyMap<string, string> = new Map([
  ['authorization', 'Authorization'],
  ['content-type', 'Content-Type'],
  ['host', 'Host'],
  ['x-service-account', 'X-Service-Account'],
]);

const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'connection']);

/** Every name in the lists above. Most names are in none, and one look-up shows it. */
const LISTED: ReadonlySet<string> = new Set([
  ...NOT_SENT_UPSTREAM,
  ...NOT_SENT_BACK,
  ...WITH_ADDRESS,
  ...NOT_NOMINATED,
  ...ONCE.keys(),
  ...FRAMING,
]);

/** A name in lower case that folding would not change. */
const FOLDED = /^[a-z0-9-]*$/;

/** A field's name as it was sent, and everything that follows from it. */
export class FieldName {
  /** As sent. */
  readonly text: string;
  /** What precedes the value in a line. */
  readonly lineStart: string;
  /** Whether it can be written. */
  readonly isToken: boolean;
  readonly lower: string;
  readonly folded: string;
  /** What becomes of a request field. `trust`: forwarded if a trusted proxy sent it. `refuse`: the request is a 400. */
  readonly request: 'forward' | 'drop' | 'trust' | 'refuse';
  /** What becomes of a response field. `address`: forwarded once the upstream's own address in it has been translated. */
  readonly response: 'forward' | 'drop' | 'address';
  /** The field's usual name if it may occur only once in a request; undefined otherwise. */
  readonly once: string | undefined;
  /** Whether it says where a message ends, or what happens to its connection. */
  readonly isFraming: boolean;
  /** Whether the upstream client writes it itself. */
  readonly isClients: boolean;

  constructor(text: string) {
    this.text = text;
    this.lineStart = `${text}: `;
    this.isToken = isToken(text);
    this.lower = text.toLowerCase();
    this.folded = FOLDED.test(this.lower) ? this.lower : foldName(text);
    const isListed = LISTED.has(this.folded);
    this.request = requestActionFor(this.folded, this.folded !== this.lower, isListed);
    this.response = isListed ? responseActionFor(this.folded, this.lower) : 'forward';
    this.once = isListed ? ONCE.get(this.folded) : undefined;
    this.isFraming = isListed && FRAMING.has(this.lower);
    this.isClients = this.isFraming || this.lower === 'host' || this.lower === 'upgrade';
  }
}

/**
 * Whether the gateway removes a field of this name because an upstream could take another path or a proxy from it, or read it as one
 * that has a meaning here.
 */
export function isMisleading({ request, folded, lower }: FieldName): boolean {
  if (request !== 'drop') return false;
  return folded !== lower || folded === 'proxy' || !NOT_SENT_UPSTREAM.has(folded);
}

/** @param isAlias whether the name as sent has other characters than its folded form */
function requestActionFor(folded: string, isAlias: boolean, isListed: boolean): FieldName['request'] {
  const letters = folded.includes('-') ? folded.replaceAll('-', '') : folded;
  if (METHOD_OVERRIDE.test(letters)) return 'refuse';
  if (PATH_OVERRIDE.test(letters) || (isListed && NOT_SENT_UPSTREAM.has(folded))) return 'drop';
  if (isAlias && isListed && NOT_NOMINATED.has(folded)) return 'drop';
  if (folded !== 'forwarded' && folded !== 'x-real-ip' && !folded.startsWith('x-forwarded-'))
    return 'forward';
  return isAlias ? 'drop' : 'trust';
}

function responseActionFor(folded: string, lower: string): FieldName['response'] {
  if (NOT_SENT_BACK.has(folded)) return 'drop';
  return WITH_ADDRESS.has(lower) ? 'address' : 'forward';
}
