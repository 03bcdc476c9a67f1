/** The trace of a request (https://www.w3.org/TR/trace-context/). */
import { randomBytes } from 'node:crypto';

/** Section 3.2.2: ids of zeros are invalid, and so is anything behind the flags of version 00. */
const VERSION_00 = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Section 4: later versions begin with the same fields; `ff` is invalid. */
const LATER_VERSION = /^(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** A header longer than this is replaced. */
const MAX_LENGTH = 256;

/**
 * The `traceparent` of a request: the header if it is valid, otherwise that of a new trace. A new trace is flagged as sampled,
 * because the access log records it, and because an upstream that follows its parent would otherwise record nothing.
 */
export function traceparentFrom(header: unknown): string {
  return isTraceparent(header) ? header : newTraceparent();
}

export function isTraceparent(header: unknown): header is string {
  if (typeof header !== 'string' || header.length > MAX_LENGTH) return false;
  return VERSION_00.test(header) || LATER_VERSION.test(header);
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** Random hexadecimal digits, made for many requests at once: that costs less than a call for each. */
let digits = '';
let used = 0;

const IDS_AT_ONCE = 256;
const ID_DIGITS = 48;

function newTraceparent(): string {
  if (used === digits.length) {
    digits = randomBytes((IDS_AT_ONCE * ID_DIGITS) / 2).toString('hex');
    used = 0;
  }
  const traceEnd = used + 32;
  const end = used + ID_DIGITS;
  const traceparent = `00-${digits.slice(used, traceEnd)}-${digits.slice(traceEnd, end)}-01`;
  used = end;
  return traceparent;
}
