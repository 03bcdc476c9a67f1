import { lookup } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Webhook } from 'standardwebhooks';

const ANSWER_MS = 10_000;

/** A message that is the same at every attempt, its id included: a receiver can drop what it has already. */
export interface WebhookMessage {
  readonly id: string;
  readonly payload: string;
}

export interface Endpoint {
  readonly url: string;
  /** Whether it may be at a private address. */
  readonly allowPrivate: boolean;
  /** A message is signed with each. */
  secrets(): readonly string[];
}

/**
 * POSTs a message with the headers of Standard Webhooks, as the platform does (contract section 6). Rejects unless the answer is a
 * 2xx. Redirects are not followed, and bodies are not read.
 */
export async function post(
  { url, allowPrivate, secrets }: Endpoint,
  message: WebhookMessage,
  signal: AbortSignal,
): Promise<void> {
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
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
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
  await new Promise<void>((resolve, reject) => {
    const request = send(url, options, (response) => {
      const { statusCode = 0 } = response;
      response.on('error', () => undefined).destroy();
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(new Error(`the webhook answered ${statusCode}`));
    });
    request.on('error', reject);
    request.on('close', () => reject(new Error('the webhook closed the connection without an answer')));
    request.end(body);
  });
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

/** Not this machine, a private network, or the metadata service of a cloud. */
function requirePublic(address: string, hostname: string): void {
  if (ipaddr.process(address).range() === 'unicast') return;
  throw new Error(`${hostname} is at the private address ${address}, and notifications.allowPrivate is off`);
}
