import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendPlain } from '../../fixtures/decisions.ts';
import { envoyFile, startEnvoy } from '../../fixtures/envoy.ts';
import { ENVOY } from '../../fixtures/proxy-recipes.ts';
import { describeProxy } from '../describe-proxy.ts';

describeProxy(ENVOY, () => {
  let envoy: Awaited<ReturnType<typeof startEnvoy>>;
  beforeAll(async () => {
    envoy = await startEnvoy(envoyFile());
  });
  afterAll(() => envoy.close());

  const send = (path: string, client: string) => sendPlain(envoy.url, 'GET', path, { 'X-Client': client });

  it('forwards what has room, and its client gets the RateLimit headers', async () => {
    const { status, headers } = await send('/items', 'first');
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'ratelimit-policy': '"remote_address";q=20;w=1, "client";q=5;w=60',
      ratelimit: expect.stringMatching(/^"remote_address";r=\d+;t=1, "client";r=4;t=60$/),
    });
  });

  it('refuses with a 429 what has no room, and it spends nothing in the other limits', async () => {
    // However a client writes the path, and whatever it searches for, it is a search.
    for (const path of ['/search?q=a', '/%73earch?q=b', '/x/..//search/'])
      expect((await send(path, 'second')).status).toBe(200);
    const refused = await send('/search?q=a', 'second');
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({
      ratelimit: expect.stringMatching(/"client";r=2;t=\d+, "client\.path_\/search\*";r=0;t=\d+/),
      'retry-after': expect.stringMatching(/^\d+$/),
      'x-envoy-ratelimited': 'true',
    });
    for (const query of ['a', 'c', 'd', 'e'])
      expect((await send(`/search?q=${query}`, 'second')).status).toBe(429);
    expect((await send('/items', 'second')).headers.ratelimit).toMatch(/"client";r=1/);
  });
});
