/** What the scripts share: how a request is sent, and what every answer of Weir must be. */
import { check } from 'k6';
import http, { type RefinedResponse } from 'k6/http';
import { Counter, Trend } from 'k6/metrics';

export const TARGET = __ENV.TARGET ?? 'http://127.0.0.1:8080';
/** Points per second and Account, as the gateway was configured. */
export const LIMIT = Number(__ENV.LIMIT ?? 500);
export const ACCOUNTS = Number(__ENV.ACCOUNTS ?? 100);
export const SECONDS = Number(__ENV.SECONDS ?? 20);

export const degraded = new Counter('degraded');
export const refused = new Counter('refused');
/**
 * One sample for each admitted and counted request: its value is when it was sent, in Unix ms, its own time is when
 * it was answered. The decision lies between the two, from which the runner finds the worst second.
 */
const admitted = new Trend('admitted_from_ms');

export interface Sent {
  readonly account: number;
  readonly method?: 'GET' | 'POST';
  readonly path?: string;
  /** Points that the price list asks for it. */
  readonly cost?: number;
}

type Answer = RefinedResponse<'text'>;

/** Sends one request as an Account and checks everything that Weir promises of the answer. */
export function send({ account, method = 'GET', path = '/v3/payments/payees', cost = 1 }: Sent): Answer {
  const sentMs = Date.now();
  const response = http.request(method, TARGET + path, null, {
    headers: { Authorization: `Bearer token-${account}`, 'X-Service-Account': `acct_${account}` },
    responseType: 'text',
    // A URL with an id in it would be a metric of its own.
    tags: { name: `${method} ${path}` },
  });
  const isDegraded = header(response, 'Service-Ratelimit-Mode') === 'degraded';
  check(response, CHECKS);
  if (response.status === 429) {
    refused.add(1);
    check(response, REFUSAL_CHECKS);
  }
  if (isDegraded) degraded.add(1);
  else if (response.status < 400)
    admitted.add(sentMs, { account: `${account}`, cost: `${cost}`, ...limitsOf(response) });
  return response;
}

/** The limits that were in force for this request. */
function limitsOf(response: Answer): Record<string, string> {
  const policy = header(response, 'Ratelimit-Policy') ?? '';
  return {
    accountLimit: /"account-(?:read|write)";q=(\d+)/.exec(policy)?.[1] ?? '',
    organizationLimit: /"organization-(?:read|write)";q=(\d+)/.exec(policy)?.[1] ?? '',
  };
}

/** k6 writes header names as Go does: `Ratelimit-Policy`. */
export function header(response: Answer, name: string): string | undefined {
  return response.headers[name];
}

const CHECKS = {
  'is an answer of the upstream or a 429': ({ status }: Answer) => status === 200 || status === 429,
  'names the limits in force': (response: Answer) =>
    header(response, 'Ratelimit-Policy')?.includes(';q=') ?? false,
  'says what is left, or that it was not counted': (response: Answer) =>
    header(response, 'Ratelimit') === undefined
      ? header(response, 'Service-Ratelimit-Mode') === 'degraded'
      : header(response, 'Service-Ratelimit-Mode') === undefined,
  'has a request id': (response: Answer) => header(response, 'X-Request-Id') !== undefined,
  'says when to come back only on a 429': (response: Answer) =>
    (header(response, 'Retry-After') !== undefined) === (response.status === 429),
};

const REFUSAL_CHECKS = {
  'a 429 is problem+json': (response: Answer) =>
    header(response, 'Content-Type') === 'application/problem+json',
  'a 429 has the code and the bucket': (response: Answer) =>
    response.json('code') === 'RateLimitExceeded' && response.json('extensions.bucket') !== undefined,
  'Retry-After is at least a second': (response: Answer) => Number(header(response, 'Retry-After')) >= 1,
};
