import type { RequestListener } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;

/** Answers with the header fields that the query names; UP stands for the origin that the request was sent to. */
const answerAsAsked: RequestListener = (request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://upstream');
  const origin = `http://127.0.0.1:${request.socket.localPort}`;
  for (const [name, value] of searchParams) response.appendHeader(name, value.replaceAll('UP', origin));
  response.writeHead(searchParams.has('Location') ? 307 : 200).end();
};

async function start(settings: Record<string, unknown> = {}, path = ''): Promise<void> {
  const upstream = await startUpstream(answerAsAsked);
  const sections = { upstream: { url: upstream.url + path }, ...settings };
  gateway = await startGateway({ upstream, settings: sections });
}

async function answer(
  fields: Record<string, string>,
  headers: Record<string, string> = {},
  at = '/v3/things',
) {
  const response = await fetch(`${gateway.url}${at}?${new URLSearchParams(fields)}`, {
    redirect: 'manual',
    headers: { Authorization: 'Bearer service', ...headers },
  });
  return response.headers;
}

describe('with the usual settings', () => {
  beforeAll(() => start());
  afterAll(() => gateway.close());

  it.each([
    ['UP/items/?page=2#top', 'GATEWAY/items/?page=2#top'],
    ['UP', 'GATEWAY/'],
    ['UP?q=1', 'GATEWAY/?q=1'],
    ['UP//evil.example', 'GATEWAY//evil.example'],
    ['/items/', '/items/'],
    ['../items', '../items'],
    ['?page=2', '?page=2'],
    ['https://login.example.com/start?back=UP/items', 'https://login.example.com/start?back=UP/items'],
    ['http://127.0.0.1:1/items', 'http://127.0.0.1:1/items'],
  ])('a redirect to %s reaches the client as %s', async (sent, expected) => {
    const plain = (value: string | null) =>
      value?.replace(gateway.url, 'GATEWAY').replace(gateway.upstream.url, 'UP');
    const headers = await answer({ Location: sent, 'Content-Location': sent });
    expect([headers.get('Location'), headers.get('Content-Location')].map(plain)).toEqual([
      expected,
      expected,
    ]);
  });

  it('a URL of the upstream in another scheme or without one names it as well', async () => {
    const { host } = new URL(gateway.upstream.url);
    for (const sent of [`https://${host}/items/`, `//${host}/items/`, `HTTP://user@${host}/items/`]) {
      expect((await answer({ Location: sent })).get('Location'), sent).toBe(`${gateway.url}/items/`);
    }
  });

  it('a client that follows the redirect arrives behind the gateway', async () => {
    const at = `${gateway.url}/v3/things?${new URLSearchParams({ Location: 'UP/v3/lists' })}`;
    const response = await fetch(at, { headers: { Authorization: 'Bearer service' } });
    expect(response.url).toBe(`${gateway.url}/v3/lists`);
    expect(response.headers.get('RateLimit')).toContain('account-read');
  });

  it('a stranger cannot choose the origin', async () => {
    const forwarded = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'evil.example' };
    expect((await answer({ Location: 'UP/items' }, forwarded)).get('Location')).toBe(`${gateway.url}/items`);
  });

  it('a client without Host gets a path', async () => {
    const request = 'GET /v3/things?Location=UP//items HTTP/1.0\r\nAuthorization: Bearer service\r\n\r\n';
    expect((await sendRaw(gateway.url, request)).text).toMatch(/^location: \/items\r$/im);
  });

  it.each([
    ['a=1; Domain=127.0.0.1; Path=/', 'a=1; Domain=localhost; Path=/'],
    ['a=1; domain = .127.0.0.1', 'a=1; Domain=localhost'],
    ['a=1; Domain=example.com', 'a=1; Domain=example.com'],
    ['a=1; Path=/', 'a=1; Path=/'],
  ])('the cookie %s becomes %s', async (sent, expected) => {
    const { port } = new URL(gateway.url);
    const request = `GET /v3/things?${new URLSearchParams({ 'Set-Cookie': sent })} HTTP/1.1\r\nHost: localhost:${port}\r\n`;
    const { text } = await sendRaw(
      gateway.url,
      `${request}Authorization: Bearer service\r\nConnection: close\r\n\r\n`,
    );
    expect(/^set-cookie: (.*)\r$/im.exec(text)?.[1]).toBe(expected);
  });
});

describe('with settings of its own', () => {
  let others: TestUpstream[] = [];
  afterEach(async () => {
    await gateway.close();
    for (const other of others) await other.close();
    others = [];
  });

  it('the path of the upstream URL is left out, and no host can take its place', async () => {
    await start({}, '/base');
    expect((await answer({ Location: 'UP/base/items' })).get('Location')).toBe(`${gateway.url}/items`);
    expect((await answer({ Location: '/base/items' })).get('Location')).toBe('/items');
    expect((await answer({ Location: '/based' })).get('Location')).toBe('/based');
    expect((await answer({ Location: '/base//evil.example' })).get('Location')).toBe('/evil.example');
  });

  it("behind a trusted proxy, the origin is the proxy's", async () => {
    const forwarded = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'api.example.com' };
    await start({ listen: { trustedProxies: ['127.0.0.0/8'] } });
    expect((await answer({ Location: 'UP/items' }, forwarded)).get('Location')).toBe(
      'https://api.example.com/items',
    );
  });

  it.each(['upstream', 'preserve'])(
    'each upstream gets the Host that its settings say, here %s',
    async (host) => {
      const [main, route] = await Promise.all([startUpstream(answerAsAsked), startUpstream(answerAsAsked)]);
      others = [route];
      const inverse = host === 'upstream' ? 'preserve' : 'upstream';
      const routes = [{ prefix: '/v3/unchecked', url: route.url, host: inverse }];
      gateway = await startGateway({
        upstream: main,
        settings: { upstream: { url: main.url, host, routes } },
      });
      await answer({});
      const location = (await answer({ Location: 'UP/v3/lists' }, {}, '/v3/unchecked')).get('Location');
      const [client, own] = [
        new URL(gateway.url).host,
        (upstream: TestUpstream) => new URL(upstream.url).host,
      ];
      expect(main.seen[0]?.headers.host).toBe(host === 'preserve' ? client : own(main));
      expect(route.seen[0]?.headers.host).toBe(host === 'preserve' ? own(route) : client);
      expect(location).toBe(`${gateway.url}/v3/lists`);
    },
  );
});
