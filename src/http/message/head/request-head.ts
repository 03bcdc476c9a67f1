import type { Fields, FieldValues } from '../../../domain/field-name.ts';
import type { FieldSection } from './field-section.ts';

/** The head of a request as it was read. */
export interface RequestHead extends Fields {
  readonly method: string;
  /** As sent. */
  readonly target: string;
  /** Such as `1.1`. */
  readonly httpVersion: string;
  readonly fields: FieldSection;
  /** The values by lower-case name. */
  readonly headers: FieldValues;
}

/** Whether a body follows the head (RFC 9112 section 6.3). */
export function hasBody(head: Fields): boolean {
  const length = head.field('content-length');
  return head.field('transfer-encoding') !== undefined || (length !== undefined && Number(length) !== 0);
}

/** Whether the client waits for a 100 before it sends the body. */
export function isContinueExpected(head: RequestHead): boolean {
  return head.httpVersion === '1.1' && head.field('expect')?.toLowerCase() === '100-continue';
}
