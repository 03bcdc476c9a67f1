/** Which header fields go through the gateway, in both directions. Field lists are flat: name, value, name, value. */

/** Fields of one connection, never forwarded (RFC 9110 section 7.6.1, and those that Node or undici own). */
const HOP_BY_HOP = [
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

/** Fields that only the gateway may set, whoever sends them. */
const GATEWAY_OWNED = ['ratelimit', 'ratelimit-policy', 'service-ratelimit-mode', 'x-request-id'];

/** Fields by which some frameworks take another path than the request line's, which is what was priced. */
const PATH_OVERRIDES = ['x-original-url', 'x-rewrite-url'];

const NOT_SENT_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...GATEWAY_OWNED,
  ...PATH_OVERRIDES,
  'expect',
  'host',
  'x-account-id',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-organization-id',
  'x-principal-id',
  'x-principal-type',
]);

/** Fields that the gateway or its upstream reads: no Connection header can take them away. */
const NOT_NOMINATED: ReadonlySet<string> = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'idempotency-key',
  'x-service-account',
]);

const NOT_SENT_BACK: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...GATEWAY_OWNED]);

/** What happens to a request field: forwarded, dropped, or forwarded if a trusted proxy sent it. */
type Rule = 'forward' | 'drop' | 'trust';

/** Rules by name as sent, so that a name is taken apart once; names beyond these are taken apart each time. */
const rules = new Map<string, Rule>();
const MAX_RULES = 1_000;

/**
 * The end-to-end fields of a request, as sent, in their order.
 *
 * @param connection the Connection header, whose nominated fields stay behind
 * @param isTrusted whether a trusted proxy sent it, whose word on the client counts
 */
export function requestFields(
  rawHeaders: readonly string[],
  connection: string | undefined,
  isTrusted: boolean,
): string[] {
  const nominated = nominatedBy(connection);
  const fields: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const rule = rules.get(name) ?? learnRule(name);
    if (rule === 'drop' || (rule === 'trust' && !isTrusted)) continue;
    if (nominated?.has(name.toLowerCase())) continue;
    fields.push(name, rawHeaders[index + 1] ?? '');
  }
  return fields;
}

function learnRule(name: string): Rule {
  const rule = ruleFor(name.toLowerCase());
  if (rules.size < MAX_RULES) rules.set(name, rule);
  return rule;
}

function ruleFor(name: string): Rule {
  if (name.includes('_')) {
    // CGI and WSGI make one variable of `X_Account_Id` and `X-Account-Id`.
    const alias = name.replaceAll('_', '-');
    return NOT_NOMINATED.has(alias) || ruleFor(alias) !== 'forward' ? 'drop' : 'forward';
  }
  if (NOT_SENT_UPSTREAM.has(name)) return 'drop';
  return name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-')
    ? 'trust'
    : 'forward';
}

/** The end-to-end fields of an upstream's response. */
export function responseFields(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  status: number,
): string[] {
  const nominated = nominatedBy(headers.connection?.toString());
  const fields: string[] = [];
  for (const name in headers) {
    if (NOT_SENT_BACK.has(name) || nominated?.has(name)) continue;
    // RFC 9110 section 8.6: a 204 has none.
    if (status === 204 && name === 'content-length') continue;
    push(fields, name, headers[name]);
  }
  return fields;
}

function push(fields: string[], name: string, value: string | string[] | undefined): void {
  if (typeof value === 'string') fields.push(name, value);
  else if (value !== undefined) for (const one of value) fields.push(name, one);
}

/** The usual values of Connection name no field: they need no set. */
function nominatedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const names = connection.split(',').map((name) => name.trim().toLowerCase());
  return new Set(names.filter((name) => !NOT_NOMINATED.has(name)));
}
