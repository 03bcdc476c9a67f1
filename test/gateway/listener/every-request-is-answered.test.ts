import { METHODS } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { generatedCombinations } from '../../fixtures/generated-cases.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';

/** Methods of RTSP (RFC 7826) and ICE, which Node's parser accepts with their own versions. */
const OTHER_METHODS = [
  ...['DESCRIBE', 'ANNOUNCE', 'SETUP', 'PLAY', 'PAUSE', 'TEARDOWN', 'RECORD', 'FLUSH', 'REDIRECT'],
  ...['GET_PARAMETER', 'SET_PARAMETER', 'SOURCE', 'NONE'],
];
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'RTSP/1.0', 'ICE/1.0'];

/** The heads of requests that ask for every kind of connection. */
const FIELDS = [
  'Host: weir\r\nConnection: close\r\n',
  '',
  'Host: weir\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n',
  'Host: weir\r\nExpect: 100-continue\r\nContent-Length: 1\r\n',
];

const methods = [...new Set([...METHODS, ...OTHER_METHODS])];

/** TLS takes as long as many plain connections, and reads the same: some methods of each kind are enough. */
const methodsAt = (url: string) =>
  url.startsWith('https') ? methods.filter((_, index) => index % 4 === 0) : methods;

const AT_ONCE = 200;

let gateways: readonly TestGateway[];
beforeAll(async () => {
  const kinds = [{}, { tls: newCertificate() }];
  gateways = await Promise.all(
    kinds.map((tls) =>
      startGateway({
        limits: PLENTY,
        // Not every answer closes its connection. The idle time-out closes the others.
        settings: {
          listen: { host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 200, ...tls },
          log: { level: 'error' },
          decisions: { host: '127.0.0.1', port: 0, trusted: ['127.0.0.1'] },
        },
      }),
    ),
  );
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
});

it.each(VERSIONS)(
  'a request of every method with %s is answered, and its connection ends',
  async (version) => {
    const decisionsUrls = gateways.map(({ decisionsUrl }) => decisionsUrl);
    const urls = [...gateways.map(({ url }) => url), ...decisionsUrls];
    const cases = generatedCombinations(
      urls.flatMap((url) =>
        FIELDS.flatMap((fields) => methodsAt(url).map((method) => ({ url, method, fields }))),
      ),
    );
    for (let from = 0; from < cases.length; from += AT_ONCE) {
      await Promise.all(
        cases.slice(from, from + AT_ONCE).map(async ({ url, method, fields }) => {
          const { text, statuses } = await sendRaw(url, `${method} /v3/things ${version}\r\n${fields}\r\n`);
          const context = JSON.stringify([method, version, fields, new URL(url).protocol, text]);
          // Node's server closes a CONNECT that nothing listens for, at the port for decisions.
          if (method !== 'CONNECT' || !decisionsUrls.includes(url)) expect(statuses, context).toHaveLength(1);
          expect(
            statuses.every((status) => status < 500),
            context,
          ).toBe(true);
        }),
      );
    }
    expect(gateways.flatMap(({ lines }) => lines)).toEqual([]);
  },
);

it('a request that follows another protocol on its connection is not run', async () => {
  for (const { url } of gateways) {
    const socket = await connectRaw(url);
    const answer = untilClosed(socket);
    socket.write('GET /v3/things RTSP/1.0\r\n\r\nGET /v3/things HTTP/1.1\r\nHost: weir\r\n\r\n');
    expect((await answer).statuses).toEqual([400]);
  }
});

it('requests of one packet behind a CONNECT end the connection, and no port with it', async () => {
  const packet = 'CONNECT weir:1 HTTP/1.1\r\nHost: weir\r\n\r\n'.repeat(3);
  for (const { url, adminUrl, decisionsUrl } of gateways) {
    for (const port of [url, adminUrl, decisionsUrl]) {
      await sendRaw(port, packet);
      const { statuses } = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n');
      expect(statuses, port).toHaveLength(1);
    }
  }
});
