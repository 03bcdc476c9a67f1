/** Which header fields the gateway forwards, in both directions. Field lists are flat: name, value, name, value. */
import type { Caller } from '../domain/caller.ts';
import { type FieldValues, foldName } from '../domain/field-name.ts';
import { GATEWAY_OWNED, HOP_BY_HOP, NameMemo, NOT_NOMINATED, requestRule } from './field-names.ts';

const NOT_SENT_BACK: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...GATEWAY_OWNED]);

const sentBack = new NameMemo((name) => !NOT_SENT_BACK.has(foldName(name)));

/**
 * The end-to-end fields of a request, unchanged and in order.
 *
 * @param connection the Connection header, whose nominated fields are not forwarded
 * @param isTrusted whether a trusted proxy sent it, whose forwarded headers count
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
    const { action } = requestRule(name);
    if (action !== 'forward' && !(action === 'trust' && isTrusted)) continue;
    if (nominated?.has(foldName(name))) continue;
    fields.push(name, rawHeaders[index + 1] ?? '');
  }
  return fields;
}

/** Adds the trace of a request without spans. The client's `tracestate` belongs to its own valid `traceparent` (W3C Trace Context, section 3.3). */
export function pushTrace(fields: string[], headers: FieldValues, traceparent: string): void {
  fields.push('traceparent', traceparent);
  const { tracestate } = headers;
  if (tracestate !== undefined && headers.traceparent === traceparent) fields.push('tracestate', tracestate);
}

/** Adds the identity fields of the caller for the upstream. */
export function pushIdentity(fields: string[], { account, organization, principal }: Caller): void {
  fields.push('X-Account-Id', account, 'X-Principal-Id', principal.id, 'X-Principal-Type', principal.type);
  if (organization !== undefined) fields.push('X-Organization-Id', organization);
}

/**
 * The end-to-end fields of an upstream's response, as sent, in their order.
 *
 * @param connection the Connection header, whose nominated fields are not forwarded
 */
export function responseFields(
  rawHeaders: readonly string[],
  connection: string | undefined,
  status: number,
): string[] {
  const nominated = nominatedBy(connection);
  const fields: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (!sentBack.get(name) || nominated?.has(foldName(name))) continue;
    // RFC 9110 section 8.6: a 204 has none.
    if (status === 204 && name.toLowerCase() === 'content-length') continue;
    fields.push(name, rawHeaders[index + 1] ?? '');
  }
  return fields;
}

/** The folded names that Connection nominates. Its usual values name no field: they need no set. */
function nominatedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const names = connection.split(',').map((name) => foldName(name.trim()));
  return new Set(names.filter((name) => !NOT_NOMINATED.has(name)));
}
