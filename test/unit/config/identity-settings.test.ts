import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseKeyFile } from '../../../src/config/files/key-file.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { newCertificate } from '../../fixtures/certificate.ts';

function problemsOf(identity: object, credentials: readonly object[] = []): string {
  const file = join(mkdtempSync(join(tmpdir(), 'weir-test-')), 'weir.yaml');
  writeFileSync(file, JSON.stringify({ identity, credentials }));
  try {
    loadSettings(file, {});
    return '';
  } catch (error) {
    return (error as Error).message.replaceAll(/^.*weir\.yaml:\d+: /gm, '');
  }
}

const JWT = { kind: 'jwt', issuer: 'https://id', audience: 'api', jwksUrl: 'https://id/jwks' };
const { jwksUrl, ...JWT_WITHOUT_KEYS } = JWT;

describe('credentials', () => {
  const KEY = { kind: 'header', name: 'X-API-Key' };
  it.each([
    [[KEY, { kind: 'basic' }, { ...KEY, name: 'Api-Token', forward: false, identity: JWT }], ''],
    [[KEY, { ...KEY, name: 'x-api-key' }], 'credentials.1: x-api-key is listed twice'],
    [[{ kind: 'basic' }, { kind: 'basic' }], 'credentials.1: Basic is listed twice'],
    [[{ ...KEY, name: 'Authorization' }], 'credentials.0.name: authorization has another meaning'],
    [[{ ...KEY, name: 'X-Service-Account' }], 'credentials.0.name: x-service-account has another meaning'],
    [
      [{ ...KEY, name: 'X-Client-Certificate-Subject' }],
      'credentials.0.name: x-client-certificate-subject has another meaning',
    ],
    [
      [{ ...KEY, identity: JWT_WITHOUT_KEYS }],
      'credentials.0.identity: has neither jwksUrl nor keyFile: set one of them',
    ],
  ])('%j: %s', (credentials, expected) => {
    expect(problemsOf({ kind: 'static' }, credentials)).toBe(expected);
  });
});

describe('identity', () => {
  it.each([
    JWT,
    { ...JWT, audience: ['a', 'b'] },
    { ...JWT_WITHOUT_KEYS, keyFile: 'secret.jwk', algorithms: ['HS256'] },
    { ...JWT, directory: { kind: 'http', url: 'https://a/accounts/{account}?v=1' } },
    { kind: 'introspection', url: 'http://127.0.0.1:9/i', clientId: 'weir', clientSecret: 's' },
  ])('takes %j', (identity) => {
    expect(problemsOf(identity)).toBe('');
  });

  it.each([
    [JWT_WITHOUT_KEYS, 'identity: has neither jwksUrl nor keyFile: set one of them'],
    [{ ...JWT, keyFile: 'k' }, 'identity: has both jwksUrl and keyFile: set one of them'],
    [{ ...JWT, audience: ['a', 5] }, 'identity.audience: must be a name or a list of names, is a list'],
    [{ ...JWT, audience: [] }, 'identity.audience: must be a name or a list of names, is an empty list'],
    [{ ...JWT, algorithms: ['HS256'] }, 'identity.algorithms: HS256 needs a secret: set keyFile to its file'],
    [
      { ...JWT_WITHOUT_KEYS, keyFile: 'k', algorithms: ['HS256', 'RS256'] },
      'identity.algorithms: HS256 cannot be combined with public-key algorithms',
    ],
    [
      { ...JWT, jwksUrl: 'http://id.example.com/jwks' },
      'identity.jwksUrl: must be an https:// URL (http:// for loopback addresses only), is "http://id.example.com/jwks"',
    ],
    [
      { ...JWT, jwksUrl: 'http://localhost.example.com/jwks' },
      'identity.jwksUrl: must be an https:// URL (http:// for loopback addresses only), is "http://localhost.example.com/jwks"',
    ],
    [
      { ...JWT, directory: { kind: 'http', url: 'https://a/accounts' } },
      'identity.directory.url: must contain {account}: such as https://accounts.example.com/accounts/{account}',
    ],
  ])('refuses %j', (identity, problem) => {
    expect(problemsOf(identity)).toBe(problem);
  });
});

it.each(['key:', 'my key', 'clé', 'a='])(
  'refuses %s as the prefix of API keys, because no key begins with it',
  (prefix) => {
    expect(problemsOf({ kind: 'api-keys', prefix })).toBe(
      `identity.prefix: must be letters, digits or -._~+/, at most 64 characters, is "${prefix}"`,
    );
  },
);

describe('a key file', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const jwk = publicKey.export({ format: 'jwk' });
  const secret = { kty: 'oct', k: Buffer.alloc(32, 7).toString('base64url') };
  const shortRsa = generateKeyPairSync('rsa', { modulusLength: 1024 })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString();

  it.each([
    ['PEM', pem],
    ['JWK', JSON.stringify(jwk)],
    ['JWKS', JSON.stringify({ keys: [jwk] })],
    ['JWKS behind a byte order mark', `\uFEFF${JSON.stringify({ keys: [jwk] })}`],
    ['JWKS with a key that cannot be used', JSON.stringify({ keys: [jwk, { kty: 'new' }] })],
  ])('may be %s', (_form, text) => {
    expect(parseKeyFile(text, 'keys', ['ES256']).keys[0]).toMatchObject({ kty: 'EC', x: jwk.x });
  });

  it('may be several public keys in PEM, with comments between them', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
    const text = `one:\n${pem}another:\n${rsa.export({ type: 'pkcs1', format: 'pem' })}`;
    expect(parseKeyFile(text, 'keys', ['ES256', 'RS256']).keys).toEqual([jwk, rsa.export({ format: 'jwk' })]);
    const broken = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n';
    expect(() => parseKeyFile(pem + broken, 'keys', ['ES256'])).toThrow('is not a PEM public key');
  });

  it('is the first certificate of a chain, because its issuers sign no tokens', () => {
    const [leaf, issuer] = [newCertificate(), newCertificate()].map((one) =>
      readFileSync(one.certFile, 'utf8'),
    );
    const { publicKey: ofLeaf } = new X509Certificate(leaf ?? '');
    expect(parseKeyFile(`${leaf}${issuer}`, 'keys', ['ES256']).keys).toEqual([
      ofLeaf.export({ format: 'jwk' }),
    ]);
  });

  it.each([
    ['RSA', ['PS384'], true],
    ['RSA', ['ES256', 'EdDSA'], false],
    ['P-256', ['ES256'], true],
    ['P-256', ['ES384', 'RS256'], false],
    ['P-384', ['ES384'], true],
    ['P-521', ['ES512'], true],
    ['secp256k1', ['ES256'], false],
    ['Ed25519', ['EdDSA'], true],
    ['Ed25519', ['Ed25519'], true],
    ['Ed448', ['EdDSA'], false],
    ['X25519', ['EdDSA'], false],
  ])('with a key of %s verifies %j: %s', (type, algorithms, isUsable) => {
    const parse = (more: object) => () =>
      parseKeyFile(
        JSON.stringify({ ...ofType(type).export({ format: 'jwk' }), ...more }),
        'keys',
        algorithms,
      );
    const message = `verifies none of: ${algorithms.join(', ')}`;
    if (!isUsable) return expect(parse({})).toThrow(message);
    expect(parse({ alg: algorithms[0], use: 'sig', key_ops: ['verify'] })).not.toThrow();
    for (const more of [{ use: 'enc' }, { alg: 'RSA-OAEP' }, { key_ops: ['encrypt'] }, { key_ops: 5 }])
      expect(parse(more)).toThrow(message);
  });

  it('has one secret if the algorithms are symmetric', () => {
    expect(parseKeyFile(JSON.stringify(secret), 'keys', ['HS256'])).toEqual({ keys: [secret] });
  });

  it.each([
    [
      'a private key in PEM',
      privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      'contains a private key',
    ],
    ['a private JWK', JSON.stringify(privateKey.export({ format: 'jwk' })), 'contains a private key'],
    ['a secret', JSON.stringify(secret), 'contains a secret'],
    ['nothing', '', 'is neither PEM nor JSON'],
    ['another thing', '[1]', 'is neither a JWK nor a JWKS'],
    ['no keys', '{"keys":[]}', 'contains no key'],
    [
      'a JWK without its numbers',
      '{"kty":"RSA"}',
      'no key that verifies a signature: the "RSA" key is not valid',
    ],
    ['a JWK off its curve', JSON.stringify({ ...jwk, y: jwk.x }), 'the "EC" key is not valid'],
    ['a key of another kind', '{"keys":[{"kty":"new"}]}', 'the "new" key is not valid'],
    ['a short RSA key', shortRsa, 'RSA needs 2048 bits or more, and the key has 1024'],
    ['broken PEM', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', 'is not a PEM public key'],
  ])('is not %s', (_what, text, problem) => {
    expect(() => parseKeyFile(text, 'keys', ['ES256'])).toThrow(problem);
  });

  it.each([
    [16, ['HS256'], 'contains a secret of 128 bits: HS256 needs 256 or more'],
    [0, ['HS256'], 'contains a secret of 0 bits: HS256 needs 256 or more'],
    [32, ['HS256', 'HS384'], 'contains a secret of 256 bits: HS384 needs 384 or more'],
  ])('is no secret of %i bytes for %j', (length, algorithms, problem) => {
    const short = { kty: 'oct', k: Buffer.alloc(length, 7).toString('base64url') };
    expect(() => parseKeyFile(JSON.stringify(short), 'keys', algorithms)).toThrow(problem);
  });

  it('has no second secret, which would never be used', () => {
    const text = JSON.stringify({ keys: [secret, secret] });
    expect(() => parseKeyFile(text, 'keys', ['HS256'])).toThrow('contains 2 secrets: only one can be used');
  });

  it('is no public key where the algorithms want a secret', () => {
    expect(() => parseKeyFile(pem, 'keys', ['HS256'])).toThrow('must contain a secret');
  });
});

/** A public key of this type or curve. */
function ofType(type: string): KeyObject {
  if (type === 'RSA') return generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  if (type === 'Ed25519') return generateKeyPairSync('ed25519').publicKey;
  if (type === 'Ed448') return generateKeyPairSync('ed448').publicKey;
  if (type === 'X25519') return generateKeyPairSync('x25519').publicKey;
  return generateKeyPairSync('ec', { namedCurve: type }).publicKey;
}
