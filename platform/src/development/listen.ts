import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { type ActingAs, callPlatform } from './client.ts';

export interface ListenOptions {
  readonly as: ActingAs;
  readonly subscribedEvents: readonly string[];
  readonly scope: string;
  /** Port of the receiver on loopback. 0 selects a free port. */
  readonly port: number;
  readonly print: (...lines: readonly string[]) => void;
}

export interface Listener {
  readonly url: string;
  /** Deletes the subscription and stops. */
  close(): Promise<void>;
}

/**
 * Subscribes a receiver on loopback, and prints each delivery once its signature has been verified. A delivery that
 * fails the verification is printed as such and answered with 401.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { as, subscribedEvents, scope, print } = options;
  let webhook: Webhook | undefined;
  const server = createServer((request, response) => {
    receive(webhook, request, response, print).catch((error: Error) => {
      print(`✗ ${error.message}`);
      response.writeHead(500).end();
    });
  });
  server.listen(options.port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  try {
    const path = '/v3/platform/webhook-subscriptions';
    const body = { url, subscribedEvents, scope, description: 'weir-platform listen' };
    const subscription = await callPlatform(as, 'POST', path, body);
    webhook = new Webhook(String(subscription.secret));
    return {
      url,
      async close() {
        await callPlatform(as, 'DELETE', `${path}/${subscription.id}`).catch((error: Error) =>
          print(error.message),
        );
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function receive(
  webhook: Webhook | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  print: ListenOptions['print'],
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const payload = Buffer.concat(chunks).toString();
  try {
    if (!webhook) throw new Error('not subscribed yet');
    const event = webhook.verify(payload, request.headers as Record<string, string>) as { type?: string };
    print(`✓ ${event.type}`, ...JSON.stringify(event, undefined, 2).split('\n'));
    response.writeHead(204).end();
  } catch (error) {
    print(`✗ a delivery failed the verification: ${error instanceof Error ? error.message : error}`);
    response.writeHead(401).end();
  }
}
