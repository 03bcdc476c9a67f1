/** Which header fields go through the gateway, in both directions. Field lists are flat: name, value, name, value. */

/** Fields of one connection, never forwarded (RFC 9110 section 7.6.1, and those that Node or undici own). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Fields that only the gateway may set, whoever sends them. */
const GATEWAY_OWNED = ['ratelimit', 'ratelimit-policy', 'service-ratelimit-mode', 'x-request-id'];

const NOT_SENT_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...GATEWAY_OWNED,
  'expect',
  'forwarded',
  'host',
  'x-account-id',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-organization-id',
  'x-principal-id',
]);

const NOT_SENT_BACK: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...GATEWAY_OWNED]);

/** The end-to-end fields of a request, as sent, in their order. */
export function requestFields(rawHeaders: readonly string[], connection: string | undefined): string[] {
  const nominated = nominatedBy(connection);
  const fields: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const lower = name.toLowerCase();
    if (NOT_SENT_UPSTREAM.has(lower) || nominated?.has(lower)) continue;
    fields.push(name, rawHeaders[index + 1] ?? '');
  }
  return fields;
}

/** The end-to-end fields of an upstream's response. */
export function responseFields(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  const { connection } = headers;
  const nominated = nominatedBy(typeof connection === 'string' ? connection : connection?.join());
  const fields: string[] = [];
  for (const name in headers) {
    if (NOT_SENT_BACK.has(name) || nominated?.has(name)) continue;
    const value = headers[name];
    if (typeof value === 'string') fields.push(name, value);
    else if (value !== undefined) for (const one of value) fields.push(name, one);
  }
  return fields;
}

/** The usual values of Connection name no field: they need no set. */
function nominatedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}
