import type { FieldValues } from '../domain/field-name.ts';

/** The head of a request as it was read. */
export interface RequestHead {
  readonly method: string;
  /** As sent. */
  readonly target: string;
  /** Such as `1.1`. */
  readonly httpVersion: string;
  /** As sent: name, value, name, value. */
  readonly fields: readonly string[];
  /** The values by lower-case name. */
  readonly headers: FieldValues;
}

/** Whether a body follows the head (RFC 9112 section 6.3). */
export function hasBody({ headers }: Pick<RequestHead, 'headers'>): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && Number(length) !== 0);
}

/** Whether the client waits for a 100 before it sends the body. */
export function isContinueExpected({ headers, httpVersion }: RequestHead): boolean {
  return httpVersion === '1.1' && headers.expect?.toLowerCase() === '100-continue';
}
