import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { Webhook } from 'standardwebhooks';
import { createPublicLookup, refusalOfUrl } from './addresses.ts';
import { redactedBody } from './redact.ts';

const publicLookup = createPublicLookup();

// Their own: a connection that is kept was opened to an address that was checked.
const KEPT = { keepAlive: true, timeout: 30_000 };
const agents = { 'http:': new HttpAgent(KEPT), 'https:': new HttpsAgent(KEPT) };

export interface WebhookMessage {
  readonly url: string;
  /** Each of them signs. */
  readonly secrets: readonly string[];
  /** The event's id: the same on every attempt, so that a receiver can drop what it has seen. */
  readonly id: string;
  readonly payload: string;
}

/** How one attempt ended. `isDelivered` for any 2xx answer. */
export interface AttemptOutcome {
  readonly isDelivered: boolean;
  readonly responseStatus: number | null;
  /** The beginning of the answer, redacted. */
  readonly responseBody: string | null;
  readonly error: string | null;
  readonly durationMs: number;
}

/**
 * POSTs a message with the signature and headers of Standard Webhooks. Never rejects. A redirect is not followed:
 * it would lead to an address that nobody checked.
 */
export async function postWebhook(
  message: WebhookMessage,
  timeoutMs: number,
  allowPrivate: boolean,
): Promise<AttemptOutcome> {
  const startedMs = performance.now();
  const end = (answer: Answer | undefined, error: string | null): AttemptOutcome => ({
    isDelivered: error === null,
    responseStatus: answer?.status ?? null,
    responseBody: answer?.body ?? null,
    error,
    durationMs: Math.round(performance.now() - startedMs),
  });
  const refusal = refusalOfUrl(message.url, allowPrivate);
  if (refusal) return end(undefined, `The URL ${refusal}.`);
  try {
    const answer = await post(message, timeoutMs, allowPrivate);
    const { status } = answer;
    return end(answer, status >= 200 && status < 300 ? null : `The endpoint answered ${status}.`);
  } catch (error) {
    return end(undefined, error instanceof Error ? error.message : String(error));
  }
}

interface Answer {
  readonly status: number;
  readonly body: string | null;
}

function post(message: WebhookMessage, timeoutMs: number, allowPrivate: boolean): Promise<Answer> {
  const sentAt = new Date();
  const url = new URL(message.url);
  const body = Buffer.from(message.payload);
  return new Promise((resolve, reject) => {
    const isTls = url.protocol === 'https:';
    const send = isTls ? requestHttps : requestHttp;
    const request = send(url, {
      method: 'POST',
      agent: agents[isTls ? 'https:' : 'http:'],
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': 'weir-platform',
        'webhook-id': message.id,
        'webhook-timestamp': Math.floor(sentAt.getTime() / 1000),
        'webhook-signature': message.secrets
          .map((secret) => new Webhook(secret).sign(message.id, sentAt, message.payload))
          .join(' '),
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
      const status = response.statusCode ?? 0;
      readBeginning(response, (body) => resolve({ status, body }));
    });
    request.end(body);
  });
}

/** More than the log keeps: what is redacted has to be seen whole. */
const READ_BYTES = 8192;
/** The status has come; a body that takes longer is not worth a delivery slot. */
const READ_MS = 1000;

/** Reads some of the body. A connection whose answer is read to its end serves the next delivery. */
function readBeginning(response: IncomingMessage, done: (body: string | null) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = () => {
    clearTimeout(timer);
    if (!response.complete) response.destroy();
    done(bytes === 0 ? null : redactedBody(Buffer.concat(chunks).toString('utf8', 0, READ_BYTES)));
  };
  const timer = setTimeout(end, READ_MS);
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= READ_BYTES) response.destroy();
  });
  // An answer that breaks off has been given all the same.
  response.on('error', () => undefined);
  response.once('close', end);
}
