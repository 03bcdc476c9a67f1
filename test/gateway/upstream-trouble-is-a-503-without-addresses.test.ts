import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startUpstream } from '../fixtures/upstream.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

async function expectUnavailable(answer: Response): Promise<void> {
  expect(answer.status).toBe(503);
  expect(answer.headers.get('Retry-After')).toBeNull();
  const body = await answer.text();
  expect(JSON.parse(body)).toMatchObject({
    code: 'ServiceUnavailable',
    status: 503,
    title: 'Service Unavailable',
  });
  expect(body).not.toMatch(/127\.0\.0\.1|ECONN|localhost|:\d{4}/);
}

it('an upstream that refuses the connection', async () => {
  const gone = await startUpstream();
  await gone.close();
  gateway = await startGateway({ upstreamUrl: gone.url, upstream: { ...gone, close: async () => {} } });
  const answer = await gateway.send('GET', '/v3/things');
  // It was charged: the upstream may have done the work.
  expect(answer.headers.get('RateLimit')).not.toBeNull();
  await expectUnavailable(answer);
});

it('an upstream that resets the connection', async () => {
  const upstream = await startUpstream((request) => request.socket.destroy());
  gateway = await startGateway({ upstream });
  await expectUnavailable(await gateway.send('POST', '/v3/things', { body: '{}' }));
});

it("an upstream's own 5xx passes unchanged, once", async () => {
  const upstream = await startUpstream((_request, response) => {
    response.statusCode = 503;
    response.end('my own words');
  });
  gateway = await startGateway({ upstream });
  const answer = await gateway.send('GET', '/v3/things');
  expect([answer.status, await answer.text()]).toEqual([503, 'my own words']);
  expect(upstream.seen).toHaveLength(1);
});

it('an answer that is cut short reaches the client as one', async () => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'Content-Length': '100' });
    response.write('half', () => response.destroy());
  });
  gateway = await startGateway({ upstream });
  const answer = await gateway.send('GET', '/v3/things');
  await expect(answer.text()).rejects.toThrow();
});
