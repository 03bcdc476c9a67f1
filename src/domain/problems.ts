/**
 * The gateway's own responses, as problem+json (contract section 7). A refusal is a value that a stage returns; it is never
 * thrown.
 */
import type { FieldError } from './field-errors.ts';

/** Status and title of each code that the gateway uses. */
const PROBLEMS = {
  BadRequest: { status: 400, title: 'Bad Request' },
  Unauthenticated: { status: 401, title: 'Unauthenticated' },
  Forbidden: { status: 403, title: 'Forbidden' },
  ResourceNotFound: { status: 404, title: 'Resource Not Found' },
  MethodNotAllowed: { status: 405, title: 'Method Not Allowed' },
  PayloadTooLarge: { status: 413, title: 'Payload Too Large' },
  ValidationError: { status: 422, title: 'Validation Error' },
  RateLimitExceeded: { status: 429, title: 'Rate Limit Exceeded' },
  ServiceUnavailable: { status: 503, title: 'Service Unavailable' },
} as const;

type ProblemCode = keyof typeof PROBLEMS;

export const PROBLEM_CODES = Object.keys(PROBLEMS) as readonly ProblemCode[];

/** A response that ends the request. A stage returns it instead of its value; test with `instanceof`. */
export class Refusal {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly extensions: Readonly<Record<string, string | number | readonly string[]>>;
  readonly errors: readonly FieldError[] | undefined;
  /** Further response headers, such as `Retry-After` or `WWW-Authenticate`. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The code's own, or a more specific one, such as 431 for a BadRequest. */
  readonly status: number;
  /** Whether the connection has to close, because the end of this request cannot be determined. */
  readonly closes: boolean;
  #frame: ReturnType<typeof frameOf> | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    parts: Partial<Pick<Refusal, 'extensions' | 'errors' | 'headers' | 'status' | 'closes'>> = {},
  ) {
    this.code = code;
    this.detail = detail;
    this.extensions = parts.extensions ?? {};
    this.errors = parts.errors;
    this.headers = parts.headers;
    this.status = parts.status ?? PROBLEMS[code].status;
    this.closes = parts.closes ?? false;
  }

  /** Its problem body without the request id. It is kept, because most refusals are repeated. */
  frame(baseUrl: string) {
    if (this.#frame?.baseUrl !== baseUrl) this.#frame = frameOf(this, baseUrl);
    return this.#frame;
  }
}

/** For a request that the store could not count, with `store.onStoreFailure: reject`. */
export const UNCOUNTED = new Refusal('ServiceUnavailable', 'The rate limit cannot be checked at the moment.');

/**
 * The problem body, as JSON text: exactly the members of contract section 7, `errors` on validation errors only.
 * `type` is `<baseUrl>/errors/<code in kebab-case>`.
 *
 * @param requestId letters, digits and `._-` only: it needs no escapes
 */
export function problemBody(refusal: Refusal, requestId: string, baseUrl: string) {
  const { before, after, bytes } = refusal.frame(baseUrl);
  return { text: before + requestId + after, bytes: bytes + requestId.length };
}

/** The same as a member of another JSON value. */
export function problemValue(refusal: Refusal, requestId: string, baseUrl: string): unknown {
  return JSON.parse(problemBody(refusal, requestId, baseUrl).text);
}

/** A problem body without its request id, in two pieces, and the length of both in bytes of UTF-8. */
function frameOf(refusal: Refusal, baseUrl: string) {
  const { code, detail, errors, extensions, status } = refusal;
  const head = JSON.stringify({
    type: `${baseUrl.replace(/(?<!\/)\/+$/, '')}/errors/${slugOf(code)}`,
    title: PROBLEMS[code].title,
    status,
    detail,
    code,
  });
  const tail = JSON.stringify({ extensions, errors });
  const before = `${head.slice(0, -1)},"requestId":"`;
  const after = `",${tail.slice(1)}`;
  return { baseUrl, before, after, bytes: Buffer.byteLength(before + after) };
}

function slugOf(code: ProblemCode): string {
  return code.replaceAll(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}

/** The request waited for its turn at the upstream for `upstream.queueTimeoutMs`. */
export const QUEUE_TIMEOUT = new Refusal(
  'ServiceUnavailable',
  'The service behind the gateway was too busy for too long.',
);

/** An upload stalled while other requests waited for the upstream. */
export const UPLOAD_STALLED = new Refusal(
  'BadRequest',
  'The request arrived too slowly while others waited for the service.',
  { status: 408, closes: true },
);

/** WebSocket connections use their whole share of the upstream's connections. */
export const TUNNELS_BUSY = new Refusal(
  'ServiceUnavailable',
  'The service behind the gateway has too many WebSocket connections.',
);
