import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose';

/** Returns the key for a token's header. Rejects with an error of jose if no key matches, or if several do. */
export type FindPublicKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;

/**
 * Finds public keys of a set. A key without an id, as in PEM, may have signed any token: a token's `kid` (RFC 7515 section 4.1.4) chooses
 * among the keys that have ids. jose takes it for the id of a key that is missing.
 */
export function publicKeysOf({ keys }: JSONWebKeySet): FindPublicKey {
  const all = createLocalJWKSet({ keys });
  const unnamed = createLocalJWKSet({ keys: keys.filter(({ kid }) => kid === undefined) });
  return async (header, token) => {
    try {
      return await all(header, token);
    } catch (error) {
      const { kid, ...withoutId } = header;
      if (!(error instanceof errors.JWKSNoMatchingKey) || typeof kid !== 'string') throw error;
      // One that is broken is no key at all: the one that the token names may be new.
      return await unnamed(withoutId, token).catch((other: unknown) => {
        throw other instanceof errors.JWKSMultipleMatchingKeys ? other : error;
      });
    }
  };
}
