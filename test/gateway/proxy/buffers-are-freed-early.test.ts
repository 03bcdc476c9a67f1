import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { Agent, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

const IS_BEFORE_NODE_24 = Number.parseInt(process.versions.node, 10) < 24;
/** The longest that is read to its end when it is refused. */
const UPLOAD = Buffer.alloc(1 << 16, 'x');
const BODY = Buffer.alloc(1 << 20, 'x');
/** Without Weir's early collection, V8 lets at least 32 MiB pile up. */
const ALLOWED_BYTES = 16 << 20;
const headers = { Authorization: 'Bearer service' };

const upstream = createServer((_, response) => response.end(BODY));
new WebSocketServer({ server: upstream }).on('connection', (client) => {
  client.on('message', (message) => client.send(message));
});
beforeAll(async () => {
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
});
afterAll(() => upstream.close());

/** A gateway that ends with the test. */
async function start(listen: object = {}): Promise<WeirProcess> {
  const weir = await startWeir({
    upstreamUrl: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    limits: PLENTY,
    settings: { listen: { host: '127.0.0.1', port: 0, ...listen }, log: { level: 'info', access: false } },
  });
  onTestFinished(() => weir.close());
  return weir;
}

async function externalBytes({ adminUrl }: WeirProcess): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^nodejs_external_memory_bytes (\S+)$/m.exec(text)?.[1]);
}

/** The most memory outside of V8's heap that the gateway was seen with after a transfer, beyond that before the first. */
async function mostAdded(weir: WeirProcess, count: number, transfer: () => Promise<void>): Promise<number> {
  const before = await externalBytes(weir);
  let most = 0;
  for (let done = 0; done < count; done++) {
    await transfer();
    if (done % 8 === 0) most = Math.max(most, (await externalBytes(weir)) - before);
  }
  return most;
}

describe.skipIf(IS_BEFORE_NODE_24)('before Node 24, V8 is left alone; later, buffers are freed early', () => {
  it('of refused uploads', async () => {
    const weir = await start();
    const refuse = async () => {
      const { status } = await fetch(`${weir.url}/v3/things`, { method: 'POST', body: UPLOAD });
      expect(status).toBe(401);
    };
    expect(await mostAdded(weir, 800, refuse)).toBeLessThan(ALLOWED_BYTES);
  });

  it('of messages on a WebSocket', async () => {
    const weir = await start();
    const client = new WebSocket(`${weir.url.replace(/^http/, 'ws')}/v3/things`, { headers });
    await once(client, 'open');
    const echo = async () => {
      client.send(BODY);
      const [message] = (await once(client, 'message')) as [Buffer];
      expect(message.length).toBe(BODY.length);
    };
    expect(await mostAdded(weir, 64, echo)).toBeLessThan(ALLOWED_BYTES);
    client.terminate();
  });

  it('of downloads over HTTPS', async () => {
    const tls = newCertificate();
    const weir = await start({ tls });
    const agent = new Agent({ ca: readFileSync(tls.certFile), keepAlive: true });
    const download = async () => {
      const [incoming] = (await once(get(`${weir.url}/v3/things`, { agent, headers }), 'response')) as [
        IncomingMessage,
      ];
      expect((await buffer(incoming)).length).toBe(BODY.length);
    };
    expect(await mostAdded(weir, 64, download)).toBeLessThan(ALLOWED_BYTES);
    agent.destroy();
  });
});
