/** The trace of a request (https://www.w3.org/TR/trace-context/). */
import { RandomTexts } from './random-texts.ts';

/** Section 3.2.2: ids of zeros are invalid, and so is anything behind the flags of version 00. */
const VERSION_00 = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Section 4: later versions begin with the same fields; `ff` is invalid. */
const LATER_VERSION = /^(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** A header longer than this is replaced. */
const MAX_LENGTH = 256;

/**
 * The `traceparent` of a request: the header if it is valid, otherwise the value for a new trace. A new trace is flagged as sampled,
 * because the access log records it, and because an upstream that follows its parent would otherwise record nothing.
 */
export function traceparentFrom(header: unknown): string {
  return isTraceparent(header) ? header : newTraceparents.next();
}

export function isTraceparent(header: unknown): header is string {
  if (typeof header !== 'string' || header.length > MAX_LENGTH) return false;
  return VERSION_00.test(header) || LATER_VERSION.test(header);
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

const newTraceparents = new RandomTexts(`00-${'x'.repeat(32)}-${'x'.repeat(16)}-01`);
