import { afterEach, expect, it } from 'vitest';
import { type SendOptions, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

const start = async (trustedProxies: readonly string[] = []) => {
  const listen = { host: '127.0.0.1', port: 0, trustedProxies };
  gateway = await startGateway({ settings: { listen, log: { level: 'info' } } });
};

/** Sends a request. @returns what the upstream received, and the log line */
async function exchange(headers: Record<string, string>, options: SendOptions = {}) {
  const before = linesOf(gateway, 'request').length;
  const { status } = await gateway.send('GET', '/v3/things', { ...options, headers });
  await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(before + 1);
  return { status, seen: gateway.upstream.seen.at(-1)?.headers, line: linesOf(gateway, 'request').at(-1) };
}

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const STARTED = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/;

it('a valid traceparent is passed on unchanged, with its tracestate, and the line has its trace id', async () => {
  await start();
  for (const traceparent of [
    `00-${TRACE_ID}-00f067aa0ba902b7-01`,
    `00-${TRACE_ID}-00f067aa0ba902b7-00`,
    `cc-${TRACE_ID}-00f067aa0ba902b7-01-what-the-future-will-be-like`,
  ]) {
    const { seen, line } = await exchange({ traceparent, tracestate: 'congo=t61rcWkgMzE' });
    expect(seen).toMatchObject({ traceparent, tracestate: 'congo=t61rcWkgMzE' });
    expect(line?.traceId).toBe(TRACE_ID);
  }
});

it('without one, each request starts a trace', async () => {
  await start();
  const ids = new Set<string>();
  for (let count = 0; count < 3; count++) {
    const { seen, line } = await exchange({ tracestate: 'congo=t61rcWkgMzE' });
    expect(seen?.traceparent).toMatch(STARTED);
    expect(seen?.traceparent?.slice(3, 35)).toBe(line?.traceId);
    expect(seen?.tracestate).toBeUndefined();
    ids.add(`${line?.traceId}`);
  }
  expect(ids.size).toBe(3);
});

it('an invalid one is replaced, and its tracestate removed', async () => {
  await start();
  for (const traceparent of [
    'nonsense',
    `00-${TRACE_ID}-00f067aa0ba902b7`,
    `00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID}-00f067aa0ba902b7-01-more`,
    `ff-${TRACE_ID}-00f067aa0ba902b7-01`,
    `cc-${TRACE_ID}-00f067aa0ba902b7-01-${'x'.repeat(300)}`,
    `00-${TRACE_ID}-00f067aa0ba902b7-01, 00-${TRACE_ID}-00f067aa0ba902b7-01`,
  ]) {
    const { seen, line } = await exchange({ traceparent, tracestate: 'congo=t61rcWkgMzE' });
    expect(seen?.traceparent).toMatch(STARTED);
    expect(seen?.traceparent).not.toContain(TRACE_ID);
    expect(seen?.traceparent?.slice(3, 35)).toBe(line?.traceId);
    expect(seen?.tracestate).toBeUndefined();
  }
});

it('the line of a refused request has them too', async () => {
  await start();
  const { status, line } = await exchange(
    { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` },
    { token: null },
  );
  expect(status).toBe(401);
  expect(line).toMatchObject({ traceId: TRACE_ID, clientAddress: '127.0.0.1' });
});

it('the client is the peer, or behind trusted proxies the last address that is not theirs', async () => {
  await start();
  const forwarded = { 'X-Forwarded-For': '1.2.3.4, 203.0.113.9, 10.1.1.1' };
  expect((await exchange(forwarded)).line?.clientAddress).toBe('127.0.0.1');
  await gateway.close();
  await start(['127.0.0.1', '10.0.0.0/8']);
  expect((await exchange(forwarded)).line?.clientAddress).toBe('203.0.113.9');
  const addresses = ['2001:db8::7', '::ffff:198.51.100.4', 'nonsense', '10.2.2.2'];
  const logged: unknown[] = [];
  for (const address of addresses) {
    logged.push((await exchange({ 'X-Forwarded-For': address })).line?.clientAddress);
  }
  expect(logged).toEqual(['2001:db8::7', '198.51.100.4', '127.0.0.1', '127.0.0.1']);
  expect((await exchange({})).line?.clientAddress).toBe('127.0.0.1');
});
