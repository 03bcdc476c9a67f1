import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Webhook } from 'standardwebhooks';
import { createPublicLookup, refusalOfUrl } from './addresses.ts';

const publicLookup = createPublicLookup();

export interface WebhookMessage {
  readonly url: string;
  readonly secret: string;
  /** The event's id: the same on every attempt, so that a receiver can drop what it has seen. */
  readonly id: string;
  readonly payload: string;
}

/** How one attempt ended. `isDelivered` for any 2xx answer. */
export interface AttemptOutcome {
  readonly isDelivered: boolean;
  readonly responseStatus: number | null;
  readonly error: string | null;
  readonly durationMs: number;
}

/**
 * POSTs a message with the signature and headers of Standard Webhooks. Never rejects. A redirect is not followed:
 * it would lead to an address that nobody checked. The answer's body is not read.
 */
export async function postWebhook(
  message: WebhookMessage,
  timeoutMs: number,
  allowPrivate: boolean,
): Promise<AttemptOutcome> {
  const startedMs = performance.now();
  const end = (responseStatus: number | null, error: string | null): AttemptOutcome => ({
    isDelivered: responseStatus !== null && responseStatus >= 200 && responseStatus < 300,
    responseStatus,
    error,
    durationMs: Math.round(performance.now() - startedMs),
  });
  const refusal = refusalOfUrl(message.url, allowPrivate);
  if (refusal) return end(null, `The URL ${refusal}.`);
  try {
    const status = await post(message, timeoutMs, allowPrivate);
    return end(status, status >= 200 && status < 300 ? null : `The endpoint answered ${status}.`);
  } catch (error) {
    return end(null, error instanceof Error ? error.message : String(error));
  }
}

function post(message: WebhookMessage, timeoutMs: number, allowPrivate: boolean): Promise<number> {
  const sentAt = new Date();
  const url = new URL(message.url);
  const body = Buffer.from(message.payload);
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = send(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': 'weir-platform',
        'webhook-id': message.id,
        'webhook-timestamp': Math.floor(sentAt.getTime() / 1000),
        'webhook-signature': new Webhook(message.secret).sign(message.id, sentAt, message.payload),
      },
      ...(!allowPrivate && { lookup: publicLookup }),
    });
    const timer = setTimeout(
      () => request.destroy(new Error(`No answer within ${timeoutMs} ms.`)),
      timeoutMs,
    );
    request.on('close', () => clearTimeout(timer));
    request.on('error', reject);
    request.on('response', (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    request.end(body);
  });
}
