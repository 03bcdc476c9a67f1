/** Lets pages of chosen origins read the gateway's responses (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { Fields } from '../../../domain/field-name.ts';
import { FieldLines } from '../head/field-lines.ts';
import type { FieldSection } from '../head/field-section.ts';
import { hasBody, type RequestHead } from '../head/field-section.ts';

/** What a response says about pages of other origins. */
export interface CorsAnswer {
  /** The value of Access-Control-Allow-Origin; undefined if the request's origin is not allowed, or if it has none. */
  readonly origin: string | undefined;
  /** Whether another origin would get another response. */
  readonly isVaried: boolean;
}

export interface CorsSettings {
  /** Origins such as `https://app.example.com`, or `*` for all. */
  readonly origins: readonly string[];
  readonly preflight: 'answer' | 'forward';
  readonly maxAgeSeconds: number;
}

const EXPOSED = 'RateLimit, RateLimit-Policy, Service-RateLimit-Mode, Retry-After, X-Request-Id';

const EVERY_ORIGIN: CorsAnswer = { origin: '*', isVaried: false };
const NO_ORIGIN: CorsAnswer = { origin: undefined, isVaried: true };

/**
 * What the responses to a request say; undefined if CORS is left to the upstream.
 *
 * @param sent the request's Origin field
 */
export function corsAnswer({ origins }: CorsSettings, sent: string | undefined): CorsAnswer | undefined {
  if (origins.length === 0) return undefined;
  if (origins.includes('*')) return EVERY_ORIGIN;
  const origin = origins.find((one) => one === sent);
  return origin === undefined ? NO_ORIGIN : { origin, isVaried: true };
}

/**
 * Adds what a page needs to read a response. An upstream's own Access-Control-Allow-Origin is kept. A response that depends on the
 * origin says so, also where the request has none: a cache would give it to pages that may read another one
 * (https://fetch.spec.whatwg.org/#cors-protocol-and-http-caches).
 *
 * @param upstream the fields of the upstream's response, if it is one; the lines have all of them but Vary
 */
export function addCors(lines: FieldLines, answer: CorsAnswer | undefined, upstream?: FieldSection): void {
  if (answer === undefined) return;
  if (answer.origin !== undefined) addPermission(lines, answer.origin, upstream);
  if (answer.isVaried) lines.add('Vary', varyWith('Origin', upstream));
}

/** The fields of responses to bytes in which no origin could be read. */
export function linesForAnyone(settings: CorsSettings): string {
  const lines = new FieldLines();
  addCors(lines, corsAnswer(settings, undefined));
  return lines.text;
}

function addPermission(lines: FieldLines, origin: string, upstream: FieldSection | undefined): void {
  if (upstream?.has('access-control-allow-origin') !== true) lines.add('Access-Control-Allow-Origin', origin);
  lines.add('Access-Control-Expose-Headers', EXPOSED);
}

/** The members of Vary and another one. `*` stays alone (RFC 9110 section 12.5.5). */
function varyWith(member: string, upstream: FieldSection | undefined): string {
  const members: string[] = [];
  upstream?.forEach((name, value) => {
    if (name.lower === 'vary') members.push(...membersOf(value));
  });
  if (!members.some((one) => one.toLowerCase() === member.toLowerCase())) members.push(member);
  return members.includes('*') ? '*' : members.join(', ');
}

function membersOf(list: string): readonly string[] {
  return list
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Whether the gateway answers this request itself: the question that a browser asks before a request of another origin. */
export function isAnsweredPreflight({ origins, preflight }: CorsSettings, head: RequestHead): boolean {
  return origins.length > 0 && preflight === 'answer' && isPreflight(head);
}

/** Whether a browser asks before a request of another origin. */
export function isPreflight(head: RequestHead): boolean {
  return (
    head.method === 'OPTIONS' &&
    head.field('origin') !== undefined &&
    head.field('access-control-request-method') !== undefined &&
    !hasBody(head)
  );
}

/** Adds the fields of the answer to a preflight. An origin that is not allowed gets no permission, so the browser refuses the request. */
export function addPreflight(
  lines: FieldLines,
  head: Fields,
  answer: CorsAnswer | undefined,
  methods: readonly string[],
  { maxAgeSeconds }: CorsSettings,
): void {
  if (answer?.origin !== undefined) {
    addPermission(lines, answer.origin, undefined);
    lines.add('Access-Control-Allow-Methods', methods.join(', '));
    const requested = head.field('access-control-request-headers');
    if (requested !== undefined) lines.add('Access-Control-Allow-Headers', requested);
    lines.add('Access-Control-Max-Age', `${maxAgeSeconds}`);
  }
  lines.add('Vary', `${answer?.isVaried === true ? 'Origin, ' : ''}Access-Control-Request-Headers`);
}
