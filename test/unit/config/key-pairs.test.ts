import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CertificateFiles, checkProxySettings } from '../../../src/config/files/certificates.ts';
import { isKeyPair, tlsOptions } from '../../../src/domain/connections/tls-files.ts';
import { type CertificatePair, KEY_TYPES, newCertificateOf } from '../../fixtures/certificate.ts';

const names = Object.keys(KEY_TYPES) as (keyof typeof KEY_TYPES)[];
const pairs = [...names, ...names].map(newCertificateOf);

const mixtures = pairs.flatMap(({ certFile }, one) =>
  pairs.map(({ keyFile }, other) => [{ certFile, keyFile }, one === other] as const),
);

const isAccepted = (use: () => unknown) => {
  try {
    use();
    return true;
  } catch {
    return false;
  }
};

const upstreamOf = (tls: Partial<CertificatePair> & { caFile?: string }) =>
  ({ upstream: { routes: [], tls } }) as never;

it('a certificate goes with its own key and no other, whatever their types', () => {
  for (const [pair, isOwn] of mixtures) {
    const [cert, key] = [readFileSync(pair.certFile), readFileSync(pair.keyFile)];
    expect(isKeyPair(cert, key)).toBe(isOwn);
  }
});

it('ports, upstreams and stores refuse a certificate with the key of another one', () => {
  for (const [pair, isOwn] of mixtures) {
    const place = ({ path, message }: { path: readonly string[]; message: string }) => ({
      source: 'weir.yaml',
      path: path.join('.'),
      message,
    });
    expect(isAccepted(() => new CertificateFiles(pair, 'listen.tls').read())).toBe(isOwn);
    expect(isAccepted(() => checkProxySettings(upstreamOf(pair), place))).toBe(isOwn);
    expect(isAccepted(() => tlsOptions(pair))).toBe(isOwn);
  }
});

it('a client certificate without its key is refused, and a key without its certificate', () => {
  const { certFile, keyFile } = newCertificateOf('ec');
  const place = ({ message }: { message: string }) => ({ source: 'weir.yaml', path: '', message });
  for (const half of [{ certFile }, { keyFile }]) {
    expect(() => checkProxySettings(upstreamOf(half), place)).toThrow('has no pair of certFile and keyFile');
    expect(() => tlsOptions(half)).toThrow('must be set together');
  }
});

it('a file of authorities without a certificate is refused, because it would trust nobody', () => {
  const { keyFile: caFile } = newCertificateOf('ec');
  const place = ({ message }: { message: string }) => ({ source: 'weir.yaml', path: '', message });
  expect(() => checkProxySettings(upstreamOf({ caFile }), place)).toThrow('is not a certificate in PEM');
});
