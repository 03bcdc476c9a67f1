import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { HANDSHAKE } from '../../fixtures/tunnels.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

/** Too short for one of them to fill the buffer of a socket. No head and no size of a chunk has this octet. */
const PIECE = Buffer.alloc(4_096, 0);

/** What an upstream has sent, and how often it had to wait for its client. */
interface Flow {
  sentBytes: number;
  stalls: number;
  isEnough: boolean;
}

/** Sends piece by piece, each in a turn of its own, for as long as the test wants more. */
async function stream(response: ServerResponse, flow: Flow): Promise<void> {
  while (!flow.isEnough && !response.closed) {
    flow.sentBytes += PIECE.length;
    if (response.write(PIECE)) await setImmediate();
    else {
      flow.stalls++;
      await once(response, 'drain');
    }
  }
  response.end();
}

it.each([
  ['plain', 200, () => ({})],
  ['TLS', 404, () => ({ tls: newCertificate() })],
])(
  'over %s, a %i of some MiB reaches a client that stops reading now and then',
  async (_, status, listen) => {
    const flow: Flow = { sentBytes: 0, stalls: 0, isEnough: false };
    const upstream = await startUpstream((_request, response) => {
      response.statusCode = status;
      stream(response, flow).catch(() => {});
    });
    const settings = { listen: { host: '127.0.0.1', port: 0, ...listen() } };
    const gateway = await startGateway({ upstream, limits: PLENTY, settings });
    onTestFinished(async () => {
      flow.isEnough = true;
      await gateway.close();
    });
    const client = await connectRaw(gateway.url);
    onTestFinished(() => void client.destroy());
    const closed = once(client, 'close');
    let head = '';
    let readBytes = 0;
    client.on('data', (bytes: Buffer) => {
      if (head === '') head = bytes.toString('latin1', 0, 20);
      for (let at = 0; at < bytes.length; at++) if (bytes[at] === 0) readBytes++;
    });
    client.write(
      `GET /v3/things HTTP/1.1\r\n${HANDSHAKE.join('\r\n')}\r\nAuthorization: Bearer service\r\n\r\n`,
    );
    for (let stops = 0; stops < 2; stops++) {
      client.pause();
      const { stalls } = flow;
      await expect.poll(() => flow.stalls).toBeGreaterThan(stalls);
      client.resume();
      // From then on, the pieces arrive one by one.
      await expect.poll(() => flow.sentBytes - readBytes).toBeLessThan(16 * PIECE.length);
    }
    flow.isEnough = true;
    await closed;
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(readBytes).toBe(flow.sentBytes);
  },
);
