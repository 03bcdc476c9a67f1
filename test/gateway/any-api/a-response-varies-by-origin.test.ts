import { once } from 'node:events';
import { Agent, type IncomingMessage, type RequestListener, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const APP = 'https://app.example.com';

interface Asked {
  readonly status: number;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly vary?: string;
}

const PREFLIGHT = { Authorization: '', 'Access-Control-Request-Method': 'GET' };

/** Each kind of response, and what asks for it. */
const RESPONSES: readonly Asked[] = [
  { status: 200 },
  { status: 200, path: '/v3/things?vary=1', vary: 'Accept-Encoding, Accept, Origin' },
  { status: 200, path: '/v3/things?vary=origin', vary: 'origin' },
  { status: 304, path: '/v3/things?status=304' },
  { status: 404, path: '/v3/things?status=404' },
  { status: 500, path: '/v3/things?status=500' },
  { status: 503, path: '/v3/things?status=0' },
  { status: 200, method: 'HEAD' },
  { status: 200, method: 'POST', path: '/v3/unlisted', body: 'a body' },
  { status: 200, method: 'OPTIONS', headers: { Authorization: '' } },
  { status: 401, headers: { Authorization: 'Bearer unknown' } },
  { status: 403, headers: { 'X-Service-Account': 'acct_2' } },
  { status: 400, path: '/v3//things' },
  { status: 405, method: 'LOCK' },
  { status: 413, method: 'POST', path: '/v3/unlisted', body: 'a body that is too long' },
  { status: 422, method: 'PUT', path: '/v3/strict/th_a' },
  { status: 429, path: '/v3/mfa-factors', headers: { Authorization: 'Bearer person' } },
];

const UPSTREAM: RequestListener = (asked, response) => {
  const { searchParams } = new URL(asked.url ?? '', 'http://upstream');
  const status = Number(searchParams.get('status') ?? 200);
  if (status === 0) {
    response.destroy();
    return;
  }
  const vary = searchParams.get('vary');
  if (vary !== null) response.setHeader('Vary', vary === '1' ? ['Accept-Encoding', 'Accept'] : vary);
  response.writeHead(status).end();
};

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    upstream: await startUpstream(UPSTREAM),
    limits: { defaults: { ...PLENTY.defaults, 'person-read': 1 } },
    settings: {
      cors: { origins: ['https://other.example', APP] },
      listen: { host: '127.0.0.1', port: 0, maxBodyBytes: 10, maxHeaderFields: 15 },
    },
  });
  await gateway.send('GET', '/v3/mfa-factors', { token: 'person' });
});
afterAll(() => gateway.close());

async function ask(
  agent: Agent | false,
  origin: string | undefined,
  { method = 'GET', path = '/v3/things', headers = {}, body }: Partial<Asked>,
): Promise<IncomingMessage> {
  const all = { Authorization: 'Bearer lonely', ...headers, ...(origin && { Origin: origin }) };
  const used = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  const sent = request(gateway.url + path, { method, agent, headers: used });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response;
}

function valuesOf({ rawHeaders }: IncomingMessage, lower: string): readonly string[] {
  return rawHeaders.filter((_, index) => rawHeaders[index - 1]?.toLowerCase() === lower && index % 2 === 1);
}

describe.each([
  ['kept open', new Agent({ keepAlive: true, maxSockets: 1 })],
  ['closed', false],
] as const)('on a connection that is %s', (_what, agent) => {
  it.each(RESPONSES)('a response that varies by origin says so: %j', async (asked) => {
    for (const origin of [APP, 'https://foreign.example', undefined]) {
      const response = await ask(agent, origin, asked);
      expect(response.statusCode).toBe(asked.status);
      expect(valuesOf(response, 'vary')).toEqual([asked.vary ?? 'Origin']);
      expect(valuesOf(response, 'access-control-allow-origin')).toEqual(origin === APP ? [APP] : []);
    }
  });

  it('so does the answer to a preflight', async () => {
    for (const origin of [APP, 'https://foreign.example']) {
      const response = await ask(agent, origin, { method: 'OPTIONS', headers: PREFLIGHT });
      expect(response.statusCode).toBe(204);
      expect(valuesOf(response, 'vary')).toEqual(['Origin, Access-Control-Request-Headers']);
    }
  });
});

it.each([
  ['no HTTP', 400, 'GET / HTTP/9.9\r\n\r\n'],
  ['a method of RTSP', 400, 'DESCRIBE / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a wrong Content-Length', 400, 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'],
  [
    'a broken chunk',
    400,
    'POST /v3/unlisted HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer lonely\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n',
  ],
  ['too many header lines', 431, `GET / HTTP/1.1\r\nOrigin: ${APP}\r\n${'X: 1\r\n'.repeat(20)}\r\n`],
  ['a long header', 431, `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
])('so does the answer to %s', async (_what, status, bytes) => {
  const { text, statuses } = await sendRaw(gateway.url, bytes);
  expect(statuses).toEqual([status]);
  expect(text.match(/^vary: .*\r$/gim)).toEqual(['Vary: Origin\r']);
});

it('so does the response on a connection above the limit', async () => {
  const settings = {
    cors: { origins: [APP] },
    listen: { host: '127.0.0.1', port: 0, maxConnections: 1 },
  };
  const full = await startGateway({ settings });
  const held = await connectRaw(full.url);
  try {
    const response = await full.send('GET', '/v3/things');
    expect(response.status).toBe(503);
    expect(response.headers.get('Vary')).toBe('Origin');
  } finally {
    held.destroy();
    await full.close();
  }
});
