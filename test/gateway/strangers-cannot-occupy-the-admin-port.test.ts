import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { newCertificate } from '../fixtures/certificate.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../fixtures/raw.ts';

const READY = 'GET /readyz HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n';
const METRICS = 'GET /metrics HTTP/1.1\r\nHost: weir\r\n\r\n';
const LAST_METRICS = METRICS.replace('Host', 'Connection: close\r\nHost');

let gateway: TestGateway;
afterEach(() => gateway.close());

describe.each([
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
])('with %s', (_, tls) => {
  const admin = { host: '127.0.0.1', port: 0, ...tls };

  it('hundreds of unfinished requests do not keep out a probe, and the oldest are closed', async () => {
    gateway = await startGateway({ settings: { admin } });
    let closed = 0;
    for (let count = 0; count < 350; count += 50) {
      const sockets = await Promise.all(Array.from({ length: 50 }, () => connectRaw(gateway.adminUrl)));
      for (const socket of sockets) {
        socket.on('error', () => {}).once('close', () => closed++);
        socket.resume().write('GET /readyz HTTP/1.1\r\n');
      }
    }
    expect((await sendRaw(gateway.adminUrl, READY)).statuses).toEqual([200]);
    await expect.poll(() => closed).toBeGreaterThanOrEqual(350 - 256);
  });

  it('a header that does not arrive is answered with 408', async () => {
    const listen = { host: '127.0.0.1', port: 0, headersTimeoutMs: 3_000 };
    gateway = await startGateway({ settings: { admin, listen } });
    const socket = await connectRaw(gateway.adminUrl);
    const answer = untilClosed(socket);
    socket.write(READY.slice(0, 20));
    expect((await answer).statuses).toEqual([408]);
  });

  it('requests of one connection are answered one at a time, and others meanwhile', async () => {
    gateway = await startGateway({ settings: { admin } });
    const sockets = await Promise.all(Array.from({ length: 4 }, () => connectRaw(gateway.adminUrl)));
    const answers = sockets.map((socket) => untilClosed(socket));
    let ended = 0;
    for (const answer of answers) void answer.then(() => ended++);
    for (const socket of sockets) socket.write(METRICS.repeat(50) + LAST_METRICS);
    let answered = 0;
    while (ended < sockets.length) {
      expect((await sendRaw(gateway.adminUrl, READY)).statuses).toEqual([200]);
      answered++;
      await setTimeout(10);
    }
    // Without turns, no probe is answered before all of the burst is.
    expect(answered).toBeGreaterThan(10);
    for (const answer of answers) {
      const { statuses } = await answer;
      expect(statuses).toHaveLength(51);
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
  });
});

it('a method that Node reads and the framework does not is answered', async () => {
  gateway = await startGateway();
  expect((await sendRaw(gateway.adminUrl, 'DESCRIBE /readyz RTSP/1.0\r\n\r\n')).statuses).toEqual([400]);
});
