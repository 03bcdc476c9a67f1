import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

it.each(['Bearer', 'bearer', 'BEARER'])('%s is accepted, and the upstream reads Bearer', async (scheme) => {
  const headers = { Authorization: `${scheme} service` };
  const response = await gateway.send('GET', '/v3/things', { token: null, headers });
  expect(response.status).toBe(200);
  expect(gateway.upstream.seen.at(-1)?.headers.authorization).toBe('Bearer service');
});
