import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendPlain } from '../../fixtures/decisions.ts';
import { type ListeningProcess, startListening } from '../../fixtures/listening-process.ts';
import { ENVOY } from '../../fixtures/proxy-recipes.ts';
import { recipe, replaced, startRecipe, writeFolder } from '../../fixtures/recipes.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { describeProxy } from '../describe-proxy.ts';

const PAGE = 'descriptors/envoy';

describeProxy(ENVOY, () => {
  let upstream: TestUpstream;
  let weir: Awaited<ReturnType<typeof startRecipe>>;
  let envoy: ListeningProcess;
  beforeAll(async () => {
    upstream = await startUpstream();
    weir = await startRecipe(PAGE, {
      env: { WEIR_PORT: '', WEIR_DECISIONS_PORT: '', WEIR_DECISIONS_ENVOY_PORT: '0' },
    });
    const { 'envoy.yaml': configuration = '' } = recipe(PAGE);
    const portOf = (url: string | undefined) => `port_value: ${new URL(url ?? '').port}`;
    envoy = await startListening(async (port) => {
      const changed = replaced(configuration, {
        'address: 0.0.0.0, port_value: 8000': `address: 127.0.0.1, port_value: ${port}`,
        'port_value: 3000': portOf(upstream.url),
        'port_value: 8081': portOf(weir.envoyUrl),
        // A busy machine may need longer.
        'timeout: 0.1s': 'timeout: 60s',
      });
      const folder = await writeFolder({ 'envoy.yaml': changed });
      return spawn(ENVOY.program ?? '', ENVOY.args(folder), { stdio: ['ignore', 'ignore', 'pipe'] });
    });
  });
  afterAll(async () => {
    await envoy.close();
    await weir.close();
    await upstream.close();
  });

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
    for (let count = 0; count < 3; count++) expect((await send('/search?q=a', 'second')).status).toBe(200);
    const refused = await send('/search?q=a', 'second');
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({
      ratelimit: expect.stringMatching(/"client";r=2;t=\d+, "client\.path_\/search\*";r=0;t=\d+/),
      'retry-after': expect.stringMatching(/^\d+$/),
      'x-envoy-ratelimited': 'true',
    });
    for (let count = 0; count < 4; count++) expect((await send('/search?q=a', 'second')).status).toBe(429);
    expect((await send('/items', 'second')).headers.ratelimit).toMatch(/"client";r=1/);
  });
});
