import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import { type ConfigError, fileError } from '../problem.ts';
import { isMapping } from '../reader/schema-node.ts';
import { isSymmetric } from '../settings/identity-settings.ts';

/**
 * The keys in the text of `identity.keyFile`: public keys or a certificate in PEM, a JWK, or a JWKS; with HS256, HS384 or HS512,
 * one symmetric JWK. Throws a ConfigError for anything else, including private keys.
 */
export function parseKeyFile(text: string, path: string, algorithms: readonly string[]): JSONWebKeySet {
  const keys = text.includes('-----BEGIN') ? keysOfPem(path, text) : keysOfJson(path, text);
  if (keys.length === 0) throw fileError(path, 'contains no key');
  const symmetric = algorithms.filter(isSymmetric);
  for (const key of keys) symmetric.length > 0 ? checkSecret(path, key, symmetric) : checkPublic(path, key);
  if (symmetric.length > 0 && keys.length > 1)
    throw fileError(path, `contains ${keys.length} secrets`, 'only one can be used');
  if (symmetric.length === 0) checkUsable(path, keys, algorithms);
  return { keys: [...keys] };
}

/** RFC 7518 section 3.2: a secret has at least as many bits as the hash that the algorithm is named after. */
function checkSecret(path: string, { kty, k }: JWK, algorithms: readonly string[]): void {
  if (kty !== 'oct' || typeof k !== 'string') throw fileError(path, 'must contain a secret ("kty": "oct")');
  const bits = Buffer.from(k, 'base64url').length * 8;
  const weak = algorithms.find((algorithm) => bits < Number(algorithm.slice('HS'.length)));
  if (weak === undefined) return;
  const message = `contains a secret of ${bits} bits: ${weak} needs ${weak.slice('HS'.length)} or more`;
  throw fileError(path, message);
}

function checkPublic(path: string, { kty, d }: JWK): void {
  if (kty === 'oct') throw fileError(path, 'contains a secret, but the algorithms need public keys');
  if (d !== undefined) throw privateKey(path);
}

/** A set may have keys that cannot be used beside those that can. */
function checkUsable(path: string, keys: readonly JWK[], algorithms: readonly string[]): void {
  const [first, ...others] = keys.map((key) => whyUnusable(key, algorithms));
  if (first !== undefined && !others.includes(undefined))
    throw fileError(path, 'contains no key that verifies a signature', first);
}

/** RFC 7518 section 3.3: an RSA key has at least this many bits. jose refuses a smaller one. */
const LEAST_RSA_BITS = 2048;

/** Why no signature of these algorithms can be verified with a public key; undefined if one can be. */
function whyUnusable(key: JWK, algorithms: readonly string[]): string | undefined {
  const { kty } = key;
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    const bits = asymmetricKeyDetails?.modulusLength ?? LEAST_RSA_BITS;
    if (bits < LEAST_RSA_BITS) return `RSA needs ${LEAST_RSA_BITS} bits or more, and the key has ${bits}`;
  } catch {
    return `the "${kty}" key is not valid`;
  }
  if (algorithms.some((one) => isFor(one, key))) return undefined;
  return `by its type, "alg", "use" and "key_ops", the "${kty}" key verifies none of: ${algorithms.join(', ')}`;
}

/** The algorithms of each type of key and of each curve (RFC 7518 section 3.1, RFC 9864 section 2.2). */
const ALGORITHMS: Readonly<Record<string, RegExp>> = {
  RSA: /^[RP]S\d/,
  'EC P-256': /^ES256$/,
  'EC P-384': /^ES384$/,
  'EC P-521': /^ES512$/,
  'OKP Ed25519': /^Ed(DSA|25519)$/,
};

/** Whether a key verifies this algorithm, by its type and by what it says itself. */
function isFor(
  algorithm: string,
  { kty, crv, alg = algorithm, use = 'sig', key_ops: uses = ['verify'] }: JWK,
): boolean {
  const ofKey = ALGORITHMS[kty === 'RSA' ? kty : `${kty} ${crv}`];
  if (ofKey?.test(algorithm) !== true || alg !== algorithm) return false;
  return use === 'sig' && Array.isArray(uses) && uses.includes('verify');
}

/** Public keys in PEM, by their labels: RFC 7468 section 13, and PKCS #1. */
const PEM_KEY = /^-----BEGIN (?:RSA )?PUBLIC KEY-----/;

/** All public keys, or the first certificate: the certificates that follow one are its issuers, which sign no tokens. */
function keysOfPem(path: string, text: string): readonly JWK[] {
  if (text.includes('PRIVATE KEY')) throw privateKey(path);
  try {
    const keys = text.split(/(?=-----BEGIN )/).filter((part) => PEM_KEY.test(part));
    return (keys.length > 0 ? keys : [text]).map(
      (key) => createPublicKey(key).export({ format: 'jwk' }) as JWK,
    );
  } catch {
    throw fileError(path, 'is not a PEM public key or certificate');
  }
}

function keysOfJson(path: string, text: string): readonly JWK[] {
  let json: unknown;
  try {
    // A byte order mark is no JSON, and a space for `trim`.
    json = JSON.parse(text.trim());
  } catch {
    throw fileError(path, 'is neither PEM nor JSON');
  }
  const keys = isMapping(json) && Array.isArray(json.keys) ? json.keys : [json];
  if (!keys.every((key) => isMapping(key) && typeof key.kty === 'string')) {
    throw fileError(path, 'is neither a JWK nor a JWKS');
  }
  return keys;
}

function privateKey(path: string): ConfigError {
  return fileError(path, 'contains a private key', 'the gateway needs only the public key');
}
