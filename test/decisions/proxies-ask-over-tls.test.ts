import { readFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:https';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newAuthority } from '../fixtures/certificate.ts';
import { DECISIONS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const authority = newAuthority();
const weir = authority.issue('/CN=weir');
const proxy = authority.issue('/CN=proxy');
const stranger = newAuthority().issue('/CN=proxy');

let gateway: TestGateway;
beforeAll(async () => {
  const tls = { ...weir, clientCaFile: authority.certFile };
  gateway = await startGateway({ settings: { decisions: { ...DECISIONS, tls } } });
});
afterAll(() => gateway.close());

/** Asks at the path of ext_authz. Rejects with the reason of a failed handshake. */
function ask(options: RequestOptions): Promise<number | undefined> {
  const headers = { Authorization: 'Bearer service' };
  const ca = readFileSync(authority.certFile);
  return new Promise((resolve, reject) => {
    const url = `${gateway.decisionsUrl}/ext-authz/v3/things`;
    const asking = request(url, { ca, headers, agent: false, ...options }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asking.on('error', reject).end();
  });
}

const shown = ({ certFile, keyFile }: typeof proxy) => ({
  cert: readFileSync(certFile),
  key: readFileSync(keyFile),
});

it('a proxy with a certificate of the authority gets its decision', async () => {
  expect(gateway.decisionsUrl).toMatch(/^https:/);
  expect(await ask(shown(proxy))).toBe(200);
});

it.each([
  ['without a certificate', {}],
  ['with a certificate of another authority', shown(stranger)],
])('a proxy %s is refused', async (_, options) => {
  await expect(ask(options)).rejects.toThrow();
});

it('the port for clients stays one of HTTP', async () => {
  expect(gateway.url).toMatch(/^http:/);
  expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
});
