import { afterAll, beforeAll, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const openapi = {
    openapi: '3.2.0',
    info: { title: 'further methods', version: '1' },
    paths: {
      '/search': { query: { 'x-weir': { cost: 3 } } },
      '/files/{id}': { additionalOperations: { COPY: { 'x-weir': { cost: 4 } } } },
    },
  };
  const upstream = await startUpstream((request, response) => request.pipe(response));
  gateway = await startGateway({ openapi, upstream });
});
afterAll(() => gateway.close());

it('a QUERY is forwarded with its body, at its price, as a read', async () => {
  const headers = { 'Content-Type': 'application/json' };
  const response = await gateway.send('QUERY', '/search', { token: 'lonely', headers, body: '{"q":1}' });
  expect(response.status).toBe(200);
  expect(remainingOf(response)).toEqual({ 'account-read': 17 });
  expect(gateway.upstream.seen.at(-1)).toMatchObject({ method: 'QUERY', url: '/search' });
  expect(await response.text()).toBe('{"q":1}');
});

it('a declared COPY is forwarded at its price, as a write', async () => {
  const response = await gateway.send('COPY', '/files/f1', { token: 'lonely' });
  expect(response.status).toBe(200);
  expect(remainingOf(response)).toEqual({ 'account-write': 16 });
  expect(gateway.upstream.seen.at(-1)).toMatchObject({ method: 'COPY', url: '/files/f1' });
});

it.each([
  ['COPY', '/search'],
  ['MOVE', '/files/f1'],
])('%s %s, which nothing declares, is a 405', async (method, path) => {
  const seen = gateway.upstream.seen.length;
  const response = await gateway.send(method, path, { token: 'lonely' });
  expect(response.status).toBe(405);
  expect(gateway.upstream.seen).toHaveLength(seen);
});
