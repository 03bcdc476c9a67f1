/**
 * How proxies ask. The path on the decisions port selects the protocol, never the headers: Caddy and Traefik send all
 * fields of the client, so a client could otherwise choose the protocol and with it the operation that is charged.
 */
import { Refusal } from '../../domain/problems.ts';
import { isHost } from '../../http/message/fields/inspect.ts';
import { isMisleading } from '../../http/message/head/field-names.ts';
import type { RequestHead } from '../../http/message/head/field-section.ts';
import { isMethod, refuseMethod } from '../../stages/match.ts';
import type { PROTOCOLS } from '../../stages/request-context.ts';

/** How a proxy asks; programs ask otherwise. */
type ProxyProtocol = Exclude<(typeof PROTOCOLS)[number], 'decide'>;

/** A protocol whose questions are in header fields. */
interface FieldProtocol {
  readonly protocol: ProxyProtocol;
  readonly methodField: string;
  readonly targetField: string;
  readonly hostField?: string;
}

const FIELD_PROTOCOLS: ReadonlyMap<string, FieldProtocol> = new Map([
  [
    '/forward-auth',
    {
      protocol: 'forward-auth',
      methodField: 'X-Forwarded-Method',
      targetField: 'X-Forwarded-Uri',
      hostField: 'X-Forwarded-Host',
    },
  ],
  [
    '/auth-request',
    { protocol: 'auth-request', methodField: 'X-Original-Method', targetField: 'X-Original-URI' },
  ],
]);

const NO_PROTOCOL = new Refusal(
  'ResourceNotFound',
  'A proxy asks for decisions at /forward-auth, at /auth-request, or below the prefix for ext_authz. A program asks at /decide and /settle.',
);
const OTHER_URL = new Refusal('BadRequest', 'X-Original-URL has another path or query than X-Original-URI.');
const BAD_HOST = new Refusal('BadRequest', 'The Host header is not a valid host name.');

/** Scheme and authority of a URL. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * What a proxy asks about: the method and the target that the client sent, as the proxy reports them. Or why that is not clear.
 *
 * @param extAuthzPrefix where it is empty, every request is an ext_authz question
 */
export function readQuestion(head: RequestHead, extAuthzPrefix: string) {
  const url = head.target;
  const protocol = fieldProtocolAt(url, extAuthzPrefix);
  if (protocol !== undefined) return fromFields(head, protocol);
  if (!url.startsWith(extAuthzPrefix)) return NO_PROTOCOL;
  const rawTarget = url.slice(extAuthzPrefix.length);
  if (extAuthzPrefix !== '' && !rawTarget.startsWith('/')) return NO_PROTOCOL;
  return asked('ext-authz', head.method, rawTarget);
}

/** The protocol of a question that could not be read; undefined where the refusal needs no form of its own. */
export function unreadProtocol(url: string, extAuthzPrefix: string): ProxyProtocol | undefined {
  return fieldProtocolAt(url, extAuthzPrefix)?.protocol;
}

function fieldProtocolAt(url: string, extAuthzPrefix: string): FieldProtocol | undefined {
  return extAuthzPrefix === '' ? undefined : FIELD_PROTOCOLS.get(url.split('?', 1)[0] ?? '');
}

/** The field, in lower case, with the original method; undefined where that is the request's own method. */
export function methodFieldOf(protocol: ProxyProtocol): string | undefined {
  return protocol === 'auth-request' ? 'x-original-method' : undefined;
}

/**
 * Fields, in lower case, that proxies themselves add to their questions. ingress-nginx sends X-Original-URL as well; nginx passes on
 * the client's, so it must have the same target.
 */
const ADDED: Readonly<Record<ProxyProtocol, ReadonlySet<string>>> = {
  'ext-authz': new Set(['x-envoy-original-path']),
  'forward-auth': new Set(),
  'auth-request': new Set(['x-original-uri', 'x-original-url']),
};

/** Refuses fields of the client that the gateway would remove: here, the proxy forwards them. */
export function misleadingField(head: RequestHead, protocol: ProxyProtocol): Refusal | undefined {
  const misleading = head.fields.names.find((name) => isMisleading(name) && !ADDED[protocol].has(name.lower));
  if (misleading !== undefined) {
    return new Refusal(
      'BadRequest',
      `The service could read ${misleading.text} as another path or another field.`,
    );
  }
  if (protocol !== 'auth-request') return undefined;
  const target = onlyValue(head, 'X-Original-URI');
  const urls = valuesOf(head, 'X-Original-URL');
  return urls.some((url) => url.replace(ORIGIN, '') !== target) ? OTHER_URL : undefined;
}

function fromFields(head: RequestHead, { protocol, methodField, targetField, hostField }: FieldProtocol) {
  const method = onlyValue(head, methodField);
  const target = onlyValue(head, targetField);
  if (method === undefined) return unclear(methodField);
  if (target === undefined) return unclear(targetField);
  const host = hostField === undefined ? undefined : head.field(hostField.toLowerCase());
  if (host !== undefined && !isHost(host)) return BAD_HOST;
  return asked(protocol, method, target);
}

/** A proxy sends such a field once, and replaces the client's. */
function onlyValue(head: RequestHead, field: string): string | undefined {
  const values = valuesOf(head, field);
  return values.length === 1 ? values[0] : undefined;
}

function valuesOf({ fields }: RequestHead, field: string): readonly string[] {
  const name = field.toLowerCase();
  return fields.names.flatMap((one, index) => (one.lower === name ? [fields.valueAt(index)] : []));
}

function unclear(field: string): Refusal {
  return new Refusal('BadRequest', `The proxy must send ${field} exactly once.`);
}

/** The method is any text that the proxy wrote to a field, so it is checked against the known ones. */
function asked(protocol: ProxyProtocol, method: string, rawTarget: string) {
  return isMethod(method) ? { protocol, method, rawTarget } : refuseMethod();
}
