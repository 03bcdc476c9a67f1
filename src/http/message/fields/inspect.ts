/**
 * Checks a request's framing and header before the first stage. The parsers refuse most smuggling attempts; these checks cover the
 * rest.
 */
import { Refusal } from '../../../domain/problems.ts';
import { namesMoreThan } from '../grammar.ts';
import type { FieldName } from '../head/field-names.ts';
import { isContinueExpected, type RequestHead } from '../head/field-section.ts';

/** No Account id is longer. */
const MAX_ACCOUNT_LENGTH = 256;

/** RFC 9112 section 3.2: uri-host and port, and nothing that a URL parser could split differently. */
const SANE_HOST = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Whether a Host field has one meaning for all parsers. */
export function isHost(value: string): boolean {
  return SANE_HOST.test(value);
}

/**
 * Why the request cannot be served at all; undefined when its framing and header are valid.
 *
 * @param methodField the field, in lower case, that a trusted proxy writes the original method to
 */
export function inspect(
  head: RequestHead,
  { maxBodyBytes, maxHeaderFields }: { readonly maxBodyBytes: number; readonly maxHeaderFields: number },
  methodField?: string,
): Refusal | undefined {
  if (head.fields.size > maxHeaderFields) return tooManyFields(maxHeaderFields);
  if (namesMoreThan(maxHeaderFields, head.field('connection'))) return tooManyNominated(maxHeaderFields);
  return messageProblem(head) ?? framingProblem(head, maxBodyBytes) ?? fieldProblem(head, methodField);
}

/** The refusal of a request with more header fields, or trailers, than it may have. */
export function tooManyFields(most: number): Refusal {
  return new Refusal('BadRequest', `The request has more than ${most} header fields.`, {
    status: 431,
    closes: true,
  });
}

function tooManyNominated(most: number): Refusal {
  return new Refusal('BadRequest', `The Connection header names more than ${most} fields.`, {
    status: 431,
    closes: true,
  });
}

/** Refuses messages of another protocol, and expectations that the gateway does not support. */
function messageProblem(head: RequestHead): Refusal | undefined {
  const { httpVersion } = head;
  if (httpVersion !== '1.1') {
    return httpVersion === '1.0' ? undefined : closing('The gateway supports HTTP/1.1 only.');
  }
  // RFC 9112 section 3.2.
  if (head.field('host') === undefined) return closing('The request has no Host header.');
  if (head.field('expect') === undefined || isContinueExpected(head)) return undefined;
  // RFC 9110 section 10.1.1.
  return new Refusal('BadRequest', 'The only supported value of the Expect header is 100-continue.', {
    status: 417,
    closes: true,
  });
}

/** Refuses messages whose end an upstream could find elsewhere; the connection has to close. */
function framingProblem(head: RequestHead, maxBodyBytes: number): Refusal | undefined {
  const encoding = head.field('transfer-encoding');
  if (encoding !== undefined) {
    // RFC 9112 section 6.1: HTTP/1.0 does not define it.
    if (head.httpVersion === '1.0')
      return closing('An HTTP/1.0 request must not have Transfer-Encoding. Use HTTP/1.1.');
    if (encoding.toLowerCase() !== 'chunked')
      return closing('The only supported Transfer-Encoding is chunked.');
  }
  const length = head.field('content-length');
  if (length !== undefined && Number(length) > maxBodyBytes) {
    return new Refusal('PayloadTooLarge', `A request body may have ${maxBodyBytes} bytes at most.`, {
      closes: true,
    });
  }
  return undefined;
}

function closing(detail: string): Refusal {
  return new Refusal('BadRequest', detail, { closes: true });
}

/** Fields that decide who is charged may occur once. Node would join them or drop the second. */
function fieldProblem(head: RequestHead, methodField?: string): Refusal | undefined {
  const { names } = head.fields;
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name === undefined) continue;
    const { text, lower, request, once } = name;
    if (request === 'refuse' && lower !== methodField) {
      return new Refusal(
        'BadRequest',
        `The header ${text} is not supported. Send the request with the method that is meant.`,
      );
    }
    if (once !== undefined && isRepeated(names, index))
      return new Refusal('BadRequest', `The header ${once} was sent more than once. Send it once.`);
  }
  const host = head.field('host');
  if (host !== undefined && !isHost(host)) {
    return new Refusal('BadRequest', 'The Host header is not a valid host name.');
  }
  return accountProblem(head.field('x-service-account'));
}

/** Whether an earlier field has this name, however it is spelt. */
function isRepeated(names: readonly FieldName[], index: number): boolean {
  for (let earlier = 0; earlier < index; earlier++) {
    if (names[earlier]?.folded === names[index]?.folded) return true;
  }
  return false;
}

function accountProblem(account: string | undefined): Refusal | undefined {
  if (account === undefined) return undefined;
  if (account === '')
    return new Refusal(
      'BadRequest',
      'The header X-Service-Account is empty. Leave it out, or send the id of an Account.',
    );
  if (account.length <= MAX_ACCOUNT_LENGTH) return undefined;
  return new Refusal('BadRequest', 'The header X-Service-Account is too long.');
}
