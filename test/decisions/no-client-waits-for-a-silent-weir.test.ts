import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { problemBody, UNCOUNTED } from '../../src/domain/problems.ts';
import { sendPlain } from '../fixtures/decisions.ts';
import { startProxy } from '../fixtures/proxies.ts';
import { PROXIES } from '../fixtures/proxy-recipes.ts';
import { startRecipe } from '../fixtures/recipes.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { describeProxy } from './describe-proxy.ts';

const ALICE = { Authorization: 'Bearer alice-token' };

/** A server that takes connections and never answers, or none at all. */
async function startSilence(): Promise<{ readonly url: string; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

for (const proxy of PROXIES.filter(({ reportsOutage }) => reportsOutage)) {
  describeProxy(proxy, () => {
    it.each(['hangs', 'is down'])("sends Weir's own 503 to the client when Weir %s", async (state) => {
      const upstream = await startUpstream();
      const weir = await startSilence();
      if (state === 'is down') weir.close();
      const running = await startProxy(proxy, upstream.url, [weir.url], { isPatient: false });
      for (const one of [running, weir, upstream]) onTestFinished(() => one.close());

      const answer = await sendPlain(running.url, 'GET', '/items', ALICE);
      expect(answer).toMatchObject({ status: 503, headers: { 'content-type': 'application/problem+json' } });
      const id = `${answer.headers['x-request-id']}`;
      expect(id).toMatch(/^[\w.-]{20,}$/);
      const { text } = problemBody(UNCOUNTED, id, 'http://localhost:8080');
      expect(JSON.parse(answer.body)).toEqual(JSON.parse(text));
      expect(upstream.seen).toEqual([]);
    });

    it('does not wait much longer for a Weir that has gone than for one that hangs', async () => {
      const upstream = await startUpstream();
      const weir = await startSilence();
      const running = await startProxy(proxy, upstream.url, [weir.url], { isPatient: false });
      for (const one of [running, weir, upstream]) onTestFinished(() => one.close());

      const startMs = performance.now();
      const hanging = await sendPlain(running.url, 'GET', '/items', ALICE);
      const hangingMs = performance.now() - startMs;
      weir.close();
      const gone = await sendPlain(running.url, 'GET', '/items', ALICE);
      expect([hanging.status, gone.status]).toEqual([503, 503]);
      // The time-out is a second, and the longest wait three.
      expect((performance.now() - startMs - hangingMs) / hangingMs).toBeLessThan(4);
    });

    it('does not blame Weir for a service that is down', async () => {
      const weir = await startRecipe(`proxies/${proxy.name.toLowerCase()}`);
      const service = await startSilence();
      service.close();
      const running = await startProxy(proxy, service.url, [weir.decisionsUrl ?? '']);
      for (const one of [running, weir]) onTestFinished(() => one.close());
      const answer = await sendPlain(running.url, 'GET', '/items', ALICE);
      expect([502, 503]).toContain(answer.status);
      expect(answer.body).not.toContain(UNCOUNTED.detail);
    });
  });
}
