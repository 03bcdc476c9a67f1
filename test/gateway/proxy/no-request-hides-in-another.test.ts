import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { SMUGGLING_CASES } from '../../fixtures/hostile/smuggling-cases.ts';
import { sendRaw } from '../../fixtures/raw.ts';

describe.each([
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
])('with %s', (_kind, tls) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({
      limits: PLENTY,
      settings: { listen: { host: '127.0.0.1', port: 0, ...tls } },
    });
  });
  afterAll(() => gateway.close());

  /** What is left of all buckets, for which it spends a point of each. */
  async function points(): Promise<number> {
    const head = 'Host: weir\r\nAuthorization: Bearer service\r\n';
    const answers = await Promise.all(
      ['GET', 'POST'].map((method) =>
        sendRaw(gateway.url, `${method} /v3/things HTTP/1.1\r\n${head}Connection: close\r\n\r\n`),
      ),
    );
    const remaining = answers.flatMap(({ text }) =>
      [...text.matchAll(/";r=(\d+)/g)].map(([, left]) => Number(left)),
    );
    expect(remaining).toHaveLength(4);
    return remaining.reduce((sum, left) => sum + left, 0);
  }

  it.each(SMUGGLING_CASES)('%s: refused, closed, unseen by the upstream and uncharged', async (_, bytes) => {
    const before = await points();
    const seen = gateway.upstream.seen.length;
    const answer = await sendRaw(gateway.url, bytes);
    expect(answer.statuses).toHaveLength(1);
    expect([400, 413, 501]).toContain(answer.statuses[0]);
    expect(answer.text).toMatch(/^Connection: close\r$/m);
    expect(gateway.upstream.seen).toHaveLength(seen);
    // The two reads and writes of looking: one point in each of two buckets, twice.
    expect(await points()).toBe(before - 4);
  });

  it('data after a valid request that closes the connection is not run', async () => {
    const seen = gateway.upstream.seen.length;
    const head = 'Host: weir\r\nAuthorization: Bearer service\r\n';
    const answer = await sendRaw(
      gateway.url,
      `GET /v3/things HTTP/1.1\r\n${head}Connection: close\r\n\r\nGET /v3/smuggled HTTP/1.1\r\n${head}\r\n`,
    );
    expect(answer.statuses[0]).toBe(200);
    expect(gateway.upstream.seen.slice(seen).filter(({ url }) => url === '/v3/smuggled')).toEqual([]);
  });

  it('valid requests in one packet are all run, in order', async () => {
    const head = 'Host: weir\r\nAuthorization: Bearer service\r\n';
    const answer = await sendRaw(
      gateway.url,
      `POST /v3/things HTTP/1.1\r\n${head}Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nxx\r\n0\r\n\r\n` +
        `GET /v3/none HTTP/1.1\r\n${head}X-Service-Account: acct_4\r\n\r\nGET /v3/things HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    );
    expect(answer.statuses).toEqual([200, 403, 200]);
  });
});
