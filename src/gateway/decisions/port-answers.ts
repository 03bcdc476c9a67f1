import type { Caller } from '../../domain/caller.ts';
import { problemBody, Refusal } from '../../domain/problems.ts';
import { FieldLines } from '../../http/message/head/field-lines.ts';
import { IDENTITY_FIELDS } from '../../http/message/head/field-names.ts';
import { addIdentity } from '../../http/message/headers.ts';
import { addGatewayFields, respond } from '../../stages/respond.ts';
import type { PortRequest } from '../entrance.ts';

/** Answers that the request may pass, with the fields for the upstream and the client. */
export function allow(request: PortRequest): 'answered' {
  const { source, caller, protocol } = request;
  const lines = new FieldLines();
  addGatewayFields(lines, request);
  if (caller !== undefined) addIdentity(lines, caller);
  if (protocol === 'ext-authz') addRemovals(lines, caller);
  lines.add('Content-Length', '0');
  lines.add('Cache-Control', 'no-store');
  source.answer(200, lines, { text: '', encoding: 'latin1' });
  return 'answered';
}

/** Envoy removes these fields from the client's request: identity fields that this caller does not have, and unchecked Accounts. */
function addRemovals(lines: FieldLines, caller: Caller | undefined): void {
  const present = new Set(lines.pairs.map(([name]) => name.toLowerCase()));
  const missing = IDENTITY_FIELDS.filter((name) => !present.has(name));
  if (caller === undefined) missing.push('x-service-account');
  if (missing.length > 0) lines.add('X-Envoy-Auth-Headers-To-Remove', missing.join(','));
}

/**
 * Answers with the gateway's own refusal, for the proxy to send to the client.
 *
 * @param deniedStatus reports a 429 to the proxy
 */
export function refuse(request: PortRequest, refusal: Refusal, baseUrl: string, deniedStatus: number): void {
  const { protocol, requestId } = request;
  const status = refusal.status === 429 ? deniedStatus : refusal.status;
  if (protocol !== 'auth-request' && status === refusal.status) {
    respond(request, refusal, baseUrl);
    return;
  }
  // nginx passes on 401 and 403 only, turns every other status into a 500, and drops the body.
  const understood = protocol === 'auth-request' && status !== 401 ? 403 : status;
  respond(request, refusal, baseUrl, disguised(refusal, understood, requestId, baseUrl));
}

/** The refusal under another status, with its own status and body in fields from which the proxy can restore the response. */
function disguised(refusal: Refusal, sentStatus: number, requestId: string, baseUrl: string): Refusal {
  const { code, detail, extensions, errors, headers, status, closes } = refusal;
  const { text } = problemBody(refusal, requestId, baseUrl);
  return new Refusal(code, detail, {
    extensions,
    ...(errors === undefined ? {} : { errors }),
    headers: { ...headers, 'X-Weir-Status': `${status}`, 'X-Weir-Problem': inAscii(text) },
    status: sentStatus,
    closes,
  });
}

/** JSON in characters that a field may have. */
function inAscii(json: string): string {
  return json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
