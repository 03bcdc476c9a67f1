import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';

const FORWARDED = {
  Forwarded: 'for=1.2.3.4',
  'X-Forwarded-For': '1.2.3.4, 5.6.7.8',
  'X-Forwarded-Host': 'api.example.com',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Port': '443',
};

let gateway: TestGateway;
afterEach(() => gateway.close());

async function seenFrom(trustedProxies: readonly string[]): Promise<NodeJS.Dict<string | string[]>> {
  const listen = { host: '127.0.0.1', port: 0, trustedProxies };
  gateway = await startGateway({ settings: { listen } });
  await gateway.send('GET', '/v3/things', { headers: FORWARDED });
  return gateway.upstream.seen[0]?.headers ?? {};
}

it.each([[[]], [['10.0.0.0/8']], [['::1', 'fd00::/8']]])(
  'a peer outside %j is not believed',
  async (ranges) => {
    const seen = await seenFrom(ranges);
    expect(seen).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': new URL(gateway.url).host,
      'x-forwarded-proto': 'http',
    });
    expect(seen.forwarded).toBeUndefined();
    expect(seen['x-forwarded-port']).toBeUndefined();
  },
);

it.each([[['127.0.0.0/8']], [['10.0.0.0/8', '127.0.0.1']]])('a peer within %j is', async (ranges) => {
  expect(await seenFrom(ranges)).toMatchObject({
    forwarded: 'for=1.2.3.4',
    'x-forwarded-for': '1.2.3.4, 5.6.7.8, 127.0.0.1',
    'x-forwarded-host': 'api.example.com',
    'x-forwarded-proto': 'https',
    'x-forwarded-port': '443',
  });
});
