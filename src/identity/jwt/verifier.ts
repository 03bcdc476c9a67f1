import { createSecretKey } from 'node:crypto';
import {
  type CryptoKey,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWK,
  type JWSHeaderParameters,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
  type KeyObject,
} from 'jose';
import type { Verified, Verifier } from '../cached-tokens.ts';
import { readPrincipal } from '../claims.ts';
import type { IdentityOf } from '../identity-observer.ts';
import type { TokenFault } from '../identity-source.ts';
import { publicKeysOf } from './key-set.ts';
import { KeysUnavailable, type RemoteKeys } from './remote-keys.ts';
import { isAsLongAsModulus, isCanonical, twinOf } from './signature-malleability.ts';

/** Returns the key that a token's header refers to. Throws if there is none. */
type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey | KeyObject>;

interface JwtOptions {
  readonly findKey: FindKey;
  /** Keys that may change while tokens are verified. Undefined for keys of a file. */
  readonly renewed?: RemoteKeys | undefined;
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly algorithms: readonly string[];
  readonly clockToleranceSeconds: number;
  readonly tokenType?: string | undefined;
  readonly claims: IdentityOf<'jwt'>['claims'];
}

/** Errors that a retry cannot fix. */
const FINAL: ReadonlySet<string> = new Set([
  'ERR_JWT_EXPIRED',
  'ERR_JOSE_ALG_NOT_ALLOWED',
  'ERR_JOSE_NOT_SUPPORTED',
  'ERR_JWS_INVALID',
  'ERR_JWT_INVALID',
  'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
]);

/** Maximum number of keys to try for a token without a key id. */
const MAX_KEYS_TRIED = 4;

/** Verifies signed tokens (RFC 7519, RFC 9068): signature, issuer, audience and times. `exp` is required. */
export class JwtVerifier implements Verifier {
  readonly #options: JwtOptions;
  readonly #checks: JWTVerifyOptions;

  constructor(options: JwtOptions) {
    this.#options = options;
    const { audience, tokenType } = options;
    this.#checks = {
      issuer: options.issuer,
      audience: typeof audience === 'string' ? audience : [...audience],
      algorithms: [...options.algorithms],
      clockTolerance: options.clockToleranceSeconds,
      requiredClaims: ['exp'],
      ...(tokenType === undefined ? {} : { typ: tokenType }),
    };
  }

  async verify(token: string): Promise<Verified> {
    if (!isCanonical(token)) return { outcome: 'invalid', isFinal: true, fault: 'malformed' };
    try {
      return this.#verified(await this.#payloadOf(token));
    } catch (error) {
      if (error instanceof KeysUnavailable) return { outcome: 'unavailable' };
      const isFinal = error instanceof errors.JOSEError && FINAL.has(error.code);
      return { outcome: 'invalid', isFinal, fault: faultOf(error) };
    }
  }

  twinOf(token: string): string | undefined {
    return twinOf(token);
  }

  /** A token that is signed with another key than the known one of that id is verified once more, if the issuer has other keys by now. */
  async #payloadOf(token: string): Promise<JWTPayload> {
    const { renewed } = this.#options;
    const version = renewed?.version ?? '';
    try {
      return await this.#payloadByKnown(token);
    } catch (error) {
      if (renewed === undefined || !isBySignature(error) || !(await renewed.renew(version))) throw error;
      return await this.#payloadByKnown(token);
    }
  }

  async #payloadByKnown(token: string): Promise<JWTPayload> {
    try {
      return (await jwtVerify(token, withWholeSignature(this.#options.findKey), this.#checks)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      return await this.#payloadByAnyOf(error, token);
    }
  }

  async #payloadByAnyOf(keys: errors.JWKSMultipleMatchingKeys, token: string): Promise<JWTPayload> {
    let tried = 0;
    for await (const key of keys) {
      if (++tried > MAX_KEYS_TRIED) break;
      try {
        return (
          await jwtVerify(
            token,
            withWholeSignature(async () => key),
            this.#checks,
          )
        ).payload;
      } catch (error) {
        // An error that is not of jose means that this key cannot be used, for example because it is too short.
        if (error instanceof errors.JOSEError && !isBySignature(error)) throw error;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }

  #verified(payload: JWTPayload): Verified {
    const principal = readPrincipal(payload, this.#options.claims);
    if (principal === 'no-account') return { outcome: 'invalid', isFinal: true, fault: principal };
    const { exp = 0, iat } = payload;
    const expiresAtMs = (exp + this.#options.clockToleranceSeconds) * 1000;
    return { outcome: 'known', principal, expiresAtMs, confirmedAtMs: iat === undefined ? 0 : iat * 1000 };
  }
}

/** An error that is not of jose means that the key cannot be used, for example because it is too short. */
function faultOf(error: unknown): TokenFault {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    // A claim of another type than RFC 7519 gives it.
    return error.reason === 'invalid' ? 'malformed' : (CLAIM_FAULTS[error.claim] ?? 'malformed');
  }
  if (error instanceof errors.JWKSNoMatchingKey) return 'unknown-key';
  const isMalformed = error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid;
  return isMalformed ? 'malformed' : 'signature';
}

const CLAIM_FAULTS: Readonly<Record<string, TokenFault>> = {
  nbf: 'not-yet-valid',
  iss: 'issuer',
  aud: 'audience',
};

function isBySignature(error: unknown): boolean {
  return error instanceof errors.JWSSignatureVerificationFailed;
}

/** Returns only keys that the signature has the length of. */
function withWholeSignature(findKey: FindKey): FindKey {
  return async (header, token) => {
    const key = await findKey(header, token);
    if (!isAsLongAsModulus(key, token.signature)) throw new errors.JWSSignatureVerificationFailed();
    return key;
  };
}

/** Looks up keys in a key file: public keys, or one shared secret. */
export function findKeyIn(set: JSONWebKeySet): FindKey {
  const [first] = set.keys;
  if (first?.kty !== 'oct') return publicKeysOf(set);
  const secret = createSecretKey(secretOf(first));
  return async () => secret;
}

function secretOf({ k }: JWK): Buffer {
  return Buffer.from(k ?? '', 'base64url');
}
