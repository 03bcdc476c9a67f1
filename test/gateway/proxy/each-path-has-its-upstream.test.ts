import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificate } from '../../fixtures/certificate.ts';
import { PLENTY, writeConfiguration } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { runWeirHere } from '../../fixtures/run-here.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;

describe('with several upstreams', () => {
  let search: TestUpstream;
  let deep: TestUpstream;
  beforeAll(async () => {
    [search, deep] = await Promise.all([startUpstream(), startUpstream()]);
    const upstream = await startUpstream();
    const routes = [
      { prefix: '/v3/search', url: search.url },
      { prefix: '/v3/search/deep', url: `${deep.url}/base/` },
    ];
    gateway = await startGateway({
      upstream,
      limits: PLENTY,
      settings: { upstream: { url: upstream.url, routes } },
    });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([search.close(), deep.close()]);
  });

  it.each([
    ['/v3/search', 'search', '/v3/search'],
    ['/v3/search/things?q=1', 'search', '/v3/search/things?q=1'],
    ['/v3/search/deep', 'deep', '/base/v3/search/deep'],
    ['/v3/search/deep/er', 'deep', '/base/v3/search/deep/er'],
    ['/v3/search/deeper', 'search', '/v3/search/deeper'],
    ['/v3/searches', 'main', '/v3/searches'],
    ['/v3/%73earch', 'search', '/v3/search'],
    ['/v3/things', 'main', '/v3/things'],
    ['/', 'main', '/'],
  ])('%s goes to %s', async (path, name, url) => {
    const upstreams = { main: gateway.upstream, search, deep };
    for (const { seen } of Object.values(upstreams)) seen.length = 0;
    expect((await gateway.send('GET', path)).status).toBe(200);
    for (const [one, { seen }] of Object.entries(upstreams)) {
      expect(
        seen.map((request) => request.url),
        one,
      ).toEqual(one === name ? [url] : []);
    }
  });
});

describe('an https upstream', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-upstream-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  let server: Server;
  let url: string;
  beforeAll(async () => {
    makeCertificate(certFile, keyFile);
    const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
    server = createServer(
      { cert, key, ca: cert, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        response.end((request.socket as TLSSocket).authorized ? 'known client' : 'some client');
      },
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => gateway.close());
  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  async function answerWith(tls: Readonly<Record<string, unknown>> | undefined): Promise<[number, string]> {
    gateway = await startGateway({
      upstreamUrl: url,
      settings: { upstream: { url, ...(tls === undefined ? {} : { tls }) } },
    });
    const answer = await gateway.send('GET', '/v3/things');
    return [answer.status, await answer.text()];
  }

  it('with an untrusted certificate gets no request', async () => {
    const [status, body] = await answerWith(undefined);
    expect(status).toBe(503);
    expect(body).not.toMatch(/certificate|self|127\.0\.0\.1/i);
  });

  it('is spoken to when its authority is named', async () => {
    expect(await answerWith({ caFile: certFile })).toEqual([200, 'some client']);
  });

  it('whose certificate bears another name is not spoken to', async () => {
    expect((await answerWith({ caFile: certFile, serverName: 'other.example' }))[0]).toBe(503);
  });

  it('receives the client certificate of the gateway', async () => {
    expect(await answerWith({ caFile: certFile, certFile, keyFile })).toEqual([200, 'known client']);
  });

  it('is not verified if verification is turned off', async () => {
    expect(await answerWith({ verify: false })).toEqual([200, 'some client']);
  });
});

it('weir check reports invalid certificates and address ranges', async () => {
  const file = await writeConfiguration({
    upstreamUrl: 'https://127.0.0.1:1',
    settings: {
      listen: { host: '127.0.0.1', port: 0, trustedProxies: ['10.0.0.0/33', 'fd00::/8', 'abc'] },
      decisions: { trusted: ['10.0.0.0/8', '::1/129'] },
      upstream: {
        url: 'https://127.0.0.1:1',
        tls: { caFile: 'missing.pem' },
        routes: [{ prefix: '/a', url: 'https://a', tls: { certFile: 'weir.yaml' } }],
      },
    },
  });
  const { code, stderr } = await runWeirHere(['check', '--config', file]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    'listen.trustedProxies.0: must be an address or a CIDR range such as 10.0.0.0/8, is "10.0.0.0/33"',
  );
  expect(stderr).toContain('listen.trustedProxies.2');
  expect(stderr).toContain('decisions.trusted.1: must be an address or a CIDR range');
  expect(stderr).not.toContain('listen.trustedProxies.1');
  expect(stderr).toContain('missing.pem: does not exist: the setting upstream.tls.caFile refers to it');
  expect(stderr).toMatch(/weir\.yaml:\d+: upstream\.routes\.0\.tls: cannot be used for TLS/);
});
