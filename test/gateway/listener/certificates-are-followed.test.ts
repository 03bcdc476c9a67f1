import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { check } from '../../../src/commands/check/check.ts';
import { listLimits } from '../../../src/commands/limit/limit.ts';
import { usage } from '../../../src/commands/usage.ts';
import {
  type CertificatePair,
  expiredCertificate,
  newAuthority,
  newCertificate,
  newCertificateOf,
} from '../../fixtures/certificate.ts';
import { PLENTY, writeConfiguration } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { runHere } from '../../fixtures/run-here.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
const TOKEN = 'an-admin-token-of-a-test';

const inUse = newCertificate();
const authority = newAuthority();
const admin = authority.issue('/CN=weir');
let gateway: TestGateway;

beforeAll(async () => {
  const settings = {
    listen: { tls: inUse },
    admin: { host: '127.0.0.1', port: 0, tls: admin, token: TOKEN },
  };
  gateway = await startGateway({ limits: PLENTY, settings });
});
afterAll(() => gateway.close());

const fingerprintIn = ({ certFile }: CertificatePair) =>
  new X509Certificate(readFileSync(certFile)).fingerprint256;

/** The fingerprint of the certificate that a new connection gets. */
async function served(url: string): Promise<string | undefined> {
  const socket = (await connectRaw(url)) as TLSSocket;
  const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
  socket.destroy();
  return fingerprint;
}

function install(pair: CertificatePair): void {
  copyFileSync(pair.certFile, inUse.certFile);
  copyFileSync(pair.keyFile, inUse.keyFile);
}

/** 1 while the certificates that were last seen are in use. */
async function lastReload(): Promise<string | undefined> {
  const { hostname: host, port } = new URL(gateway.adminUrl);
  const socket = connect({ host, port: Number(port), ca: readFileSync(authority.certFile) });
  await once(socket, 'secureConnect');
  socket.write('GET /metrics HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n');
  const { text } = await untilClosed(socket);
  return /^weir_certificates_last_reload_successful (\d)/m.exec(text)?.[1];
}

const within = { timeout: 60_000 };

it('a renewed certificate is used for new connections, and no open connection ends', async () => {
  const open = await connectRaw(gateway.url);
  const ask = async () => {
    open.write(GET);
    return String((await once(open, 'data'))[0]).slice(0, 12);
  };
  expect(await ask()).toBe('HTTP/1.1 200');
  const renewed = newCertificate();
  install(renewed);
  await expect.poll(() => served(gateway.url), within).toBe(fingerprintIn(renewed));
  expect(await ask()).toBe('HTTP/1.1 200');

  const expired = expiredCertificate();
  const ofRsa = newCertificateOf('rsa');
  const mixed = { certFile: ofRsa.certFile, keyFile: renewed.keyFile };
  const wrongs = [
    () => writeFileSync(inUse.keyFile, 'not a key'),
    () => install(expired),
    () => install(mixed),
  ];
  for (const wrong of wrongs) {
    wrong();
    await expect.poll(lastReload, within).toBe('0');
    expect(await served(gateway.url)).toBe(fingerprintIn(renewed));
    expect(await ask()).toBe('HTTP/1.1 200');
    install(renewed);
    await expect.poll(lastReload, within).toBe('1');
  }
  open.destroy();
});

it('the metric is 0 while one port has a refused certificate, though another has renewed its own', async () => {
  writeFileSync(inUse.keyFile, 'not a key');
  await expect.poll(lastReload, within).toBe('0');
  const renewed = authority.issue('/CN=weir');
  copyFileSync(renewed.certFile, admin.certFile);
  copyFileSync(renewed.keyFile, admin.keyFile);
  await expect.poll(() => served(gateway.adminUrl), within).toBe(fingerprintIn(renewed));
  expect(await lastReload()).toBe('0');
  install(newCertificate());
  await expect.poll(lastReload, within).toBe('1');
});

it('a renewed client certificate, and a renewed authority, are used for new connections to the upstream', async () => {
  const [old, next] = [newAuthority(), newAuthority()];
  const optionsOf = ({ certFile, issue }: typeof old) => {
    const { certFile: cert, keyFile: key } = issue('/CN=localhost');
    return { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(certFile) };
  };
  const options = { ...optionsOf(old), requestCert: true, rejectUnauthorized: true };
  const server = createServer(options, (request, response) => {
    response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = old.issue('/CN=first');
  const tls = { caFile: `${client.certFile}.ca`, ...client };
  copyFileSync(old.certFile, tls.caFile);
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const renewing = await startGateway({ limits: PLENTY, settings: { upstream: { url, tls } } });
  onTestFinished(async () => {
    await renewing.close();
    server.closeAllConnections();
    server.close();
  });
  const answer = async () => (await renewing.send('GET', '/v3/things')).text();
  const isInForce = async () =>
    /^weir_certificates_last_reload_successful (\d)/m.exec(await renewing.metrics())?.[1];
  expect(await answer()).toBe('first');

  writeFileSync(tls.caFile, 'not a certificate');
  await expect.poll(isInForce, within).toBe('0');
  expect(await answer()).toBe('first');

  const renewed = next.issue('/CN=second');
  copyFileSync(next.certFile, tls.caFile);
  copyFileSync(renewed.certFile, tls.certFile);
  copyFileSync(renewed.keyFile, tls.keyFile);
  server.setSecureContext(optionsOf(next));
  server.closeAllConnections();
  await expect.poll(answer, within).toBe('second');
  expect(await isInForce()).toBe('1');
});

it('commands reach an https admin port: with an authority, or with the settings of a gateway on this machine', async () => {
  vi.stubEnv('WEIR_ADMIN_TOKEN', TOKEN);
  const url = gateway.adminUrl;
  expect(url).toMatch(/^https:/);
  const ca = authority.certFile;
  expect(await runHere(() => usage('acct_1', { url, ca }))).toMatchObject({
    failure: undefined,
    stdout: expect.stringContaining('account acct_1 of organization'),
  });
  expect((await runHere(() => listLimits({ url, ca }))).stdout).toContain(
    'There are no live limits, and nothing is blocked.',
  );
  const untrusted = await runHere(() => usage('acct_1', { url }));
  expect(untrusted.failure).toMatch(
    /has a certificate that is not accepted .*: name its authority with --ca/,
  );
  const plain = await runHere(() => usage('acct_1', { url: url.replace('https:', 'http:') }));
  expect(plain.failure).toContain('does not answer: ');

  const configOf = (tls: CertificatePair) =>
    writeConfiguration({
      upstreamUrl: 'http://127.0.0.1:1',
      settings: { admin: { host: '127.0.0.1', port: Number(new URL(url).port), tls } },
    });
  const config = await configOf(admin);
  expect((await runHere(() => usage('acct_1', { config }))).stdout).toContain('account acct_1');
  // Another certificate of the same authority is not the one that this gateway has.
  const other = await configOf(authority.issue('/CN=weir'));
  expect((await runHere(() => usage('acct_1', { config: other }))).failure).toContain(
    'has a certificate that is not accepted ',
  );
  vi.unstubAllEnvs();
});

it('weir check reports certificates that a port cannot use', async () => {
  const [one, other, expired] = [newCertificate(), newCertificate(), expiredCertificate()];
  const settings = {
    listen: { tls: { certFile: one.certFile, keyFile: other.keyFile, clientCaFile: one.keyFile } },
    admin: { host: '127.0.0.1', port: 0, tls: expired },
  };
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings });
  const failureOf = async () => (await runHere(() => check({ config }))).failure?.split('\n');
  expect(await failureOf()).toEqual([
    `${other.keyFile}: is not the PEM private key of the certificate in ${one.certFile}`,
    expect.stringMatching(`^${expired.certFile}: expired on .* GMT`),
  ]);
  copyFileSync(one.keyFile, other.keyFile);
  expect(await failureOf()).toContain(`${one.keyFile}: is not a certificate in PEM`);
});

it.each(['pkcs8', 'sec1'] as const)('weir check says that a key has a passphrase (%s)', async (type) => {
  const tls = newCertificate();
  const key = createPrivateKey(readFileSync(tls.keyFile));
  writeFileSync(tls.keyFile, key.export({ type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'any' }));
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { listen: { tls } },
  });
  expect((await runHere(() => check({ config }))).failure).toBe(
    `${tls.keyFile}: is encrypted with a passphrase, which Weir does not have: write it without one, for example with openssl pkey -in KEY -out NEW`,
  );
});

it('weir check names the file of a certificate that is broken behind the first one, and not the key', async () => {
  const tls = newCertificate();
  const pem = readFileSync(tls.certFile, 'utf8');
  writeFileSync(tls.certFile, pem + pem.replace(/\n.{60}/, '\n'));
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { listen: { tls } },
  });
  expect((await runHere(() => check({ config }))).failure).toBe(
    `${tls.certFile}: has a certificate that TLS cannot use`,
  );
});
