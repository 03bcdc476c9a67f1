import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Duplex } from 'node:stream';
import { Webhook } from 'standardwebhooks';
import { createPublicLookup, refusalOfUrl } from './addresses.ts';
import { redactedBody, storableText } from './redact.ts';

const publicLookup = createPublicLookup();

const KEPT = { keepAlive: true, timeout: 30_000 };
/** How many idle connections an agent keeps, to all endpoints together: as many as a process has deliveries under way. */
export const MAX_IDLE = 256;
// Separate agents, because a connection that is kept alive goes to an address that was checked.
const agents = {
  'http:': withFewIdle(new HttpAgent(KEPT)),
  'https:': withFewIdle(new HttpsAgent(KEPT)),
};

/**
 * Lets the agent close the connection that has been idle for longest when it has `MAX_IDLE`. Its own `maxTotalSockets` would let a
 * delivery wait for the idle connections of others.
 */
function withFewIdle<Kind extends HttpAgent>(agent: Kind): Kind {
  const idle = new Set<Duplex>();
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);
  function forget(this: Duplex): void {
    idle.delete(this);
  }
  agent.keepSocketAlive = (socket) => {
    const [longest] = idle;
    if (longest !== undefined && idle.size >= MAX_IDLE) {
      idle.delete(longest);
      longest.destroy();
    }
    idle.add(socket.once('close', forget));
    return keep(socket);
  };
  agent.reuseSocket = (socket, request) => {
    idle.delete(socket.off('close', forget));
    reuse(socket, request);
  };
  return agent;
}

export interface WebhookMessage {
  readonly url: string;
  /** The message gets a signature with each of them. */
  readonly secrets: readonly string[];
  /** The event's id. It is the same on every attempt, so that receivers can deduplicate. */
  readonly id: string;
  readonly payload: string;
}

/** The result of one attempt. `isDelivered` is true for any 2xx response. */
export interface AttemptOutcome {
  readonly isDelivered: boolean;
  readonly responseStatus: number | null;
  /** The beginning of the response body, redacted. */
  readonly responseBody: string | null;
  /** May have names from the endpoint's certificate. */
  readonly error: string | null;
  readonly durationMs: number;
}

/**
 * POSTs a message with the signature and headers of Standard Webhooks. Never rejects. Redirects are not followed,
 * because their address has not been checked.
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
    error: error === null ? null : storableText(error),
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
    let hasResponse = false;
    request.on('close', () => {
      clearTimeout(timer);
      // A promise that stays open would keep its delivery slot for good.
      if (!hasResponse) reject(new Error('The connection was closed without an answer.'));
    });
    request.on('error', (error) => {
      // Such as a body that is longer than its Content-Length. A response counts whatever follows its head.
      if (!hasResponse) reject(error);
    });
    request.on('upgrade', ({ statusCode = 0 }, socket) => {
      socket.destroy();
      resolve({ status: statusCode, body: null });
    });
    request.on('response', (response) => {
      hasResponse = true;
      const status = response.statusCode ?? 0;
      readBeginning(response, (body) => resolve({ status, body }));
    });
    request.end(body);
  });
}

/** More than the log keeps, so that a secret at the cut is complete when it is redacted. */
const READ_BYTES = 8192;
/** Time limit for reading the body. The status is known by then, so the delivery slot is released. */
const READ_MS = 1000;

/** Reads the beginning of the body. The connection can be reused only if the body is read to its end. */
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
  response.on('error', () => undefined);
  response.once('close', end);
}
