/**
 * How each request header field is handled, by its name. CGI and WSGI servers make the same variable from `X-Account-Id`,
 * `X_Account_Id` and `X.Account.Id`, so names are folded before they are compared.
 */
import { foldName } from '../domain/field-name.ts';

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

/**
 * Names, without separators, by which frameworks run another path than the request line's, which was priced: `X-Original-URL`,
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

/** Fields that may occur only once, because an upstream could read the second in place of the first; spelt as usual. */
const ONCE: ReadonlyMap<string, string> = new Map([
  ['authorization', 'Authorization'],
  ['content-type', 'Content-Type'],
  ['host', 'Host'],
  ['x-service-account', 'X-Service-Account'],
]);

export interface FieldRule {
  /** `trust`: forwarded if a trusted proxy sent it. `refuse`: the request is a 400. */
  readonly action: 'forward' | 'drop' | 'trust' | 'refuse';
  /** The field's usual name if it may occur only once; undefined otherwise. */
  readonly once: string | undefined;
}

/** A cache by name. It is cleared when full, so that made-up names cannot fill it for good. */
export class NameMemo<T> {
  readonly #compute: (name: string) => T;
  readonly #known = new Map<string, T>();

  constructor(compute: (name: string) => T) {
    this.#compute = compute;
  }

  get(name: string): T {
    let result = this.#known.get(name);
    if (result === undefined) {
      result = this.#compute(name);
      if (name.length > MAX_MEMO_LENGTH) return result;
      if (this.#known.size >= MAX_MEMO_NAMES) this.#known.clear();
      this.#known.set(name, result);
    }
    return result;
  }
}

/** More names than the clients of one API send; the longest standard one has 35 characters. */
const MAX_MEMO_NAMES = 1_000;
const MAX_MEMO_LENGTH = 64;

const rules = new NameMemo(computeRule);

/** How a request field of this name is handled. */
export function requestRule(name: string): FieldRule {
  return rules.get(name);
}

/**
 * Whether the gateway removes a field of this name because an upstream could take another path from it, or read it as one that
 * has a meaning here.
 */
export function isMisleading(name: string): boolean {
  const folded = foldName(name);
  const isAlias = folded !== name.toLowerCase();
  return requestRule(name).action === 'drop' && (isAlias || !NOT_SENT_UPSTREAM.has(folded));
}

function computeRule(name: string): FieldRule {
  const folded = foldName(name);
  return { action: actionFor(folded, folded !== name.toLowerCase()), once: ONCE.get(folded) };
}

/** @param isAlias whether the name as sent has other characters than its folded form */
function actionFor(folded: string, isAlias: boolean): FieldRule['action'] {
  const letters = folded.replaceAll('-', '');
  if (METHOD_OVERRIDE.test(letters)) return 'refuse';
  if (PATH_OVERRIDE.test(letters) || NOT_SENT_UPSTREAM.has(folded)) return 'drop';
  if (isAlias && NOT_NOMINATED.has(folded)) return 'drop';
  if (folded !== 'forwarded' && folded !== 'x-real-ip' && !folded.startsWith('x-forwarded-'))
    return 'forward';
  return isAlias ? 'drop' : 'trust';
}
