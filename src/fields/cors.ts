/** Lets pages of chosen origins read the gateway's responses (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { FieldValues } from '../domain/field-name.ts';
import { hasBody, type RequestHead } from '../http1/request-head.ts';

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

/** What the responses to this request say; undefined if CORS is left to the upstream. */
export function corsAnswer({ origins }: CorsSettings, headers: FieldValues): CorsAnswer | undefined {
  if (origins.length === 0) return undefined;
  if (origins.includes('*')) return EVERY_ORIGIN;
  const origin = origins.find((one) => one === headers.origin);
  return origin === undefined ? NO_ORIGIN : { origin, isVaried: true };
}

/**
 * Adds what a page needs to read a response. An upstream's own Access-Control-Allow-Origin is kept. A response that depends on the
 * origin says so, also where the request has none: a cache would give it to pages that may read another one
 * (https://fetch.spec.whatwg.org/#cors-protocol-and-http-caches).
 */
export function pushCors(fields: string[], answer: CorsAnswer | undefined): void {
  if (answer === undefined) return;
  if (answer.origin !== undefined) pushPermission(fields, answer.origin);
  if (answer.isVaried) addVary(fields, 'Origin');
}

/** The fields of responses to bytes in which no origin could be read. */
export function fieldsForAnyone(settings: CorsSettings): readonly string[] {
  const fields: string[] = [];
  pushCors(fields, corsAnswer(settings, {}));
  return fields;
}

function pushPermission(fields: string[], origin: string): void {
  const isPresent = fields.some(
    (name, index) => index % 2 === 0 && name.toLowerCase() === 'access-control-allow-origin',
  );
  if (!isPresent) fields.push('Access-Control-Allow-Origin', origin);
  fields.push('Access-Control-Expose-Headers', EXPOSED);
}

/** Adds a member to Vary. Several fields of that name become one; `*` stays alone (RFC 9110 section 12.5.5). */
function addVary(fields: string[], member: string): void {
  const members: string[] = [];
  let kept = 0;
  for (let index = 0; index < fields.length; index += 2) {
    const [name = '', value = ''] = [fields[index], fields[index + 1]];
    if (name.length === 'Vary'.length && name.toLowerCase() === 'vary') {
      members.push(...membersOf(value));
      continue;
    }
    fields[kept++] = name;
    fields[kept++] = value;
  }
  fields.length = kept;
  if (!members.some((one) => one.toLowerCase() === member.toLowerCase())) members.push(member);
  fields.push('Vary', members.includes('*') ? '*' : members.join(', '));
}

function membersOf(list: string): readonly string[] {
  return list
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Whether the gateway answers this request itself: the question that a browser asks before a request of another origin. */
export function isAnsweredPreflight({ origins, preflight }: CorsSettings, head: RequestHead): boolean {
  const { method, headers } = head;
  return (
    origins.length > 0 &&
    preflight === 'answer' &&
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    !hasBody(head)
  );
}

/** The fields of the answer to a preflight. An origin that is not allowed gets no permission, so the browser refuses the request. */
export function preflightFields(
  headers: FieldValues,
  answer: CorsAnswer | undefined,
  methods: readonly string[],
  { maxAgeSeconds }: CorsSettings,
): string[] {
  const fields: string[] = [];
  pushCors(fields, answer);
  if (answer?.origin !== undefined) {
    fields.push('Access-Control-Allow-Methods', methods.join(', '));
    const requested = headers['access-control-request-headers'];
    if (requested !== undefined) fields.push('Access-Control-Allow-Headers', requested);
    fields.push('Access-Control-Max-Age', `${maxAgeSeconds}`);
  }
  addVary(fields, 'Access-Control-Request-Headers');
  return fields;
}
