import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import { type ConfigError, fileError } from '../problem.ts';
import { isMapping } from '../reader/schema-node.ts';
import { isSymmetric } from '../settings/identity-settings.ts';

/**
 * The keys in the text of `identity.keyFile`: a PEM public key or certificate, a JWK, or a JWKS; with HS256, HS384 or HS512,
 * one symmetric JWK. Throws a ConfigError for anything else, including private keys.
 */
export function parseKeyFile(text: string, path: string, algorithms: readonly string[]): JSONWebKeySet {
  const keys = text.includes('-----BEGIN') ? [keyOfPem(path, text)] : keysOfJson(path, text);
  if (keys.length === 0) throw fileError(path, 'contains no key');
  const symmetric = algorithms.filter(isSymmetric);
  for (const key of keys) symmetric.length > 0 ? checkSecret(path, key, symmetric) : checkPublic(path, key);
  if (symmetric.length > 0 && keys.length > 1)
    throw fileError(path, `contains ${keys.length} secrets`, 'only one can be used');
  if (symmetric.length === 0) checkUsable(path, keys);
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
function checkUsable(path: string, keys: readonly JWK[]): void {
  const [first, ...others] = keys.map(whyUnusable);
  if (first !== undefined && !others.includes(undefined))
    throw fileError(path, 'contains no key that verifies a signature', first);
}

/** RFC 7518 section 3.3: an RSA key has at least this many bits. jose refuses a smaller one. */
const LEAST_RSA_BITS = 2048;

/** Why no signature can be verified with a public key; undefined if one can be. */
function whyUnusable(key: JWK): string | undefined {
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    const bits = asymmetricKeyDetails?.modulusLength ?? LEAST_RSA_BITS;
    return bits < LEAST_RSA_BITS
      ? `RSA needs ${LEAST_RSA_BITS} bits or more, and the key has ${bits}`
      : undefined;
  } catch {
    return `the "${key.kty}" key is not valid`;
  }
}

function keyOfPem(path: string, text: string): JWK {
  if (text.includes('PRIVATE KEY')) throw privateKey(path);
  try {
    return createPublicKey(text).export({ format: 'jwk' }) as JWK;
  } catch {
    throw fileError(path, 'is not a PEM public key or certificate');
  }
}

function keysOfJson(path: string, text: string): readonly JWK[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
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
