import { createPublicKey } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import { ConfigError } from '../problem.ts';
import { isMapping } from '../reader/schema-node.ts';
import { isSymmetric } from '../settings/identity/tokens.ts';

/**
 * The keys in the text of `identity.keyFile`: a PEM public key or certificate, a JWK, or a JWKS; with HS256, HS384 or HS512,
 * one symmetric JWK. Throws a ConfigError for anything else, including private keys.
 */
export function parseKeyFile(text: string, path: string, algorithms: readonly string[]): JSONWebKeySet {
  const keys = text.includes('-----BEGIN') ? [keyOfPem(path, text)] : keysOfJson(path, text);
  if (keys.length === 0) throw refused(path, 'contains no key');
  const isSecret = algorithms.some(isSymmetric);
  for (const key of keys) isSecret ? checkSecret(path, key) : checkPublic(path, key);
  return { keys: [...keys] };
}

function checkSecret(path: string, { kty, k }: JWK): void {
  if (kty !== 'oct' || typeof k !== 'string') throw refused(path, 'must contain a secret ("kty": "oct")');
}

function checkPublic(path: string, { kty, d }: JWK): void {
  if (kty === 'oct') throw refused(path, 'contains a secret, but the algorithms need public keys');
  if (d !== undefined) throw privateKey(path);
}

function keyOfPem(path: string, text: string): JWK {
  if (text.includes('PRIVATE KEY')) throw privateKey(path);
  try {
    return createPublicKey(text).export({ format: 'jwk' }) as JWK;
  } catch {
    throw refused(path, 'is not a PEM public key or certificate');
  }
}

function keysOfJson(path: string, text: string): readonly JWK[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw refused(path, 'is neither PEM nor JSON');
  }
  const keys = isMapping(json) && Array.isArray(json.keys) ? json.keys : [json];
  if (!keys.every((key) => isMapping(key) && typeof key.kty === 'string')) {
    throw refused(path, 'is neither a JWK nor a JWKS');
  }
  return keys;
}

function privateKey(path: string): ConfigError {
  return refused(path, 'contains a private key', 'the gateway needs only the public key');
}

function refused(source: string, message: string, hint?: string): ConfigError {
  return new ConfigError([{ source, path: '', message, ...(hint === undefined ? {} : { hint }) }]);
}
