/** Which header fields the gateway forwards, in both directions. */
import type { Caller } from '../domain/caller.ts';
import { type Fields, foldName } from '../domain/field-name.ts';
import { FieldLines } from '../http1/head/field-lines.ts';
import { type FieldName, NOT_NOMINATED } from '../http1/head/field-names.ts';
import type { FieldSection } from '../http1/head/field-section.ts';
import type { RequestHead } from '../http1/head/request-head.ts';

/**
 * The end-to-end fields of a request, unchanged and in order.
 *
 * @param isTrusted whether a trusted proxy sent it, whose forwarded headers count
 * @param isHidden whether a field is left out for another reason
 */
export function requestLines(
  head: RequestHead,
  isTrusted: boolean,
  isHidden: (name: FieldName) => boolean,
): FieldLines {
  const nominated = nominatedBy(head.field('connection'));
  return new FieldLines(
    head.fields.linesOf((name) => {
      if (name.request !== 'forward' && !(name.request === 'trust' && isTrusted)) return false;
      return nominated?.has(name.folded) !== true && !isHidden(name);
    }),
  );
}

/** Adds the trace of a request without spans. The client's `tracestate` belongs to its own valid `traceparent` (W3C Trace Context, section 3.3). */
export function addTrace(lines: FieldLines, head: Fields, traceparent: string): void {
  lines.addChecked('traceparent', traceparent);
  const tracestate = head.field('tracestate');
  if (tracestate !== undefined && head.field('traceparent') === traceparent)
    lines.addChecked('tracestate', tracestate);
}

/** Adds the identity fields of the caller for the upstream. */
export function addIdentity(lines: FieldLines, { account, organization, principal }: Caller): void {
  lines.add('X-Account-Id', account);
  lines.add('X-Principal-Id', principal.id);
  lines.add('X-Principal-Type', principal.type);
  if (organization !== undefined) lines.add('X-Organization-Id', organization);
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
  const nominated = nominatedBy(connection);
  const isNominated = (name: FieldName) => nominated?.has(name.folded) === true;
  const isVaried = changes?.isVaried === true;
  const isKept = (name: FieldName) => {
    if (name.response === 'drop' || isNominated(name)) return false;
    if (name.response === 'address') return changes === undefined;
    // RFC 9110 section 8.6: a 204 has no length.
    return !(isVaried && name.lower === 'vary') && !(status === 204 && name.lower === 'content-length');
  };
  const lines = new FieldLines(fields.linesOf(isKept));
  lines.hasDate = fields.has('date') && nominated?.has('date') !== true;
  lines.hasLength = fields.contentLength !== undefined && status !== 204;
  if (changes === undefined) return lines;
  for (let index = 0; index < fields.size; index++) {
    const name = fields.names[index];
    if (name?.response !== 'address' || isNominated(name)) continue;
    lines.add(name.text, changes.translate(name, fields.valueAt(index)));
  }
  return lines;
}

/** The folded names that Connection nominates. Its usual values name no field: they need no set. */
function nominatedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const names = connection.split(',').map((name) => foldName(name.trim()));
  return new Set(names.filter((name) => !NOT_NOMINATED.has(name)));
}
