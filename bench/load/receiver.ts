import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** A server that takes webhooks and answers 204. */
export interface Receiver {
  readonly url: string;
  /** Resolves when this many have arrived. */
  received(count: number): Promise<void>;
  stop(): void;
}

export async function startReceiver(): Promise<Receiver> {
  let arrived = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(204).end();
      arrived++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async received(count) {
      while (arrived < count) await setTimeout(1);
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
