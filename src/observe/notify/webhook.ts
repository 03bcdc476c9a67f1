import { createHash, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { isPrivateAddress } from '../../config/settings/notifications-settings.ts';
import { pace } from '../../domain/pace.ts';

/** A receiver may ask for a pause of a day at most. */
const LONGEST_PAUSE_MS = 86_400_000;

/** A message that is the same at every attempt, its id included: a receiver can drop what it has already. */
export interface WebhookMessage {
  readonly id: string;
  readonly payload: string;
  /** Unix time of the event. */
  readonly madeMs: number;
}

export interface WebhookAnswer {
  readonly status: number;
  /** From `Retry-After`; undefined without one. */
  readonly retryAfterMs: number | undefined;
}

/** A message with an id of its own. */
export function newMessage(
  madeMs: number,
  event: { readonly type: string; readonly data: object },
): WebhookMessage {
  const id = `msg_${randomUUID()}`;
  const { type, data } = event;
  const payload = JSON.stringify({ id, type, timestamp: new Date(madeMs).toISOString(), data });
  return { id, payload, madeMs };
}

/** The message with this payload; undefined for any other text. */
export function messageOf(payload: string): WebhookMessage | undefined {
  try {
    const { id, timestamp } = JSON.parse(payload) as { readonly id?: unknown; readonly timestamp?: unknown };
    const madeMs = Date.parse(String(timestamp));
    return /^msg_[\w-]+$/.test(String(id)) && madeMs >= 0 ? { id: String(id), payload, madeMs } : undefined;
  } catch {
    return undefined;
  }
}

/** Names a receiver and its secrets. */
export function digestOf({ url, secrets }: Endpoint): string {
  return createHash('sha256')
    .update([url, ...secrets()].join('\n'))
    .digest('base64url');
}

export interface Endpoint {
  readonly url: string;
  /** Whether it may be at a private address. */
  readonly allowPrivate: boolean;
  /** A message is signed with each. */
  secrets(): readonly string[];
}

/**
 * POSTs a message with the headers of Standard Webhooks, as the platform does (contract section 6). Rejects without an answer.
 * Redirects are not followed, and bodies are not read.
 */
export async function post(
  { url, allowPrivate, secrets }: Endpoint,
  message: WebhookMessage,
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  const { id, payload } = message;
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (!allowPrivate && isIP(host) !== 0) requirePublic(host, host);
  const at = new Date();
  const send = protocol === 'https:' ? requestHttps : requestHttp;
  const body = Buffer.from(payload);
  const options = {
    method: 'POST',
    agent: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(pace.webhookMs)]),
    headers: {
      'content-type': 'application/json',
      'content-length': body.length,
      'user-agent': 'weir',
      'webhook-id': id,
      'webhook-timestamp': Math.floor(at.getTime() / 1_000),
      'webhook-signature': secrets()
        .map((secret) => new Webhook(secret).sign(id, at, payload))
        .join(' '),
    },
    ...(!allowPrivate && { lookup: publicLookup }),
  } as const;
  return new Promise((resolve, reject) => {
    const request = send(url, options, (response) => {
      const { statusCode: status = 0, headers } = response;
      response.on('error', () => undefined).destroy();
      resolve({ status, retryAfterMs: retryAfterMs(headers['retry-after']) });
    });
    request.on('error', reject);
    request.on('close', () => reject(new Error('the webhook closed the connection without an answer')));
    request.end(body);
  });
}

/** RFC 9110, section 10.2.3: seconds or a date. */
function retryAfterMs(field: string | undefined): number | undefined {
  if (field === undefined) return undefined;
  const waitMs = /^\d+$/.test(field) ? Number(field) * 1_000 : Date.parse(field) - Date.now();
  return waitMs > 0 ? Math.min(waitMs, LONGEST_PAUSE_MS) : undefined;
}

/** As `dns.lookup`, for the connection itself: an address that was checked is the one that is used. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? [];
    if (error !== null || first === undefined) {
      callback(error ?? new Error(`${hostname} has no address`), '', 0);
      return;
    }
    try {
      for (const { address } of addresses) requirePublic(address, hostname);
    } catch (problem) {
      callback(problem as Error, '', 0);
      return;
    }
    if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

function requirePublic(address: string, hostname: string): void {
  if (!isPrivateAddress(address)) return;
  throw new Error(`${hostname} is at the private address ${address}, and notifications.allowPrivate is off`);
}
