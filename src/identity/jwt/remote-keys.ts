import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
  type LocalJWKSet,
} from 'jose';
import { Provider, type Reporting } from '../provider.ts';

export interface RemoteKeysOptions extends Reporting {
  readonly url: string;
  readonly timeoutMs: number;
  /** Least time between two fetches for tokens signed with an unknown key. */
  readonly cooldownMs: number;
  /** A monotonic clock. */
  readonly nowMs?: () => number;
}

/** Thrown in place of a key while it is unknown whether the issuer has it. */
export class KeysUnavailable extends Error {}

/** Keys are refreshed in the background this often, so that a new key is known before tokens are signed with it. */
const REFRESH_MS = 300_000;

/** From the first failure: the last good keys stay in use, so there is no hurry. */
const BACKOFF = { tolerated: 0, firstMs: 500, longestMs: 15_000 };

/**
 * An issuer's keys, fetched over HTTP. Tokens that arrive together share one fetch; unknown keys cause a fetch at most once per
 * cooldown; while the issuer is down, the last good keys stay in use. No token can name another address.
 *
 * jose's `createRemoteJWKSet` does not fit: the request that finds the keys stale waits for the refresh and fails with it,
 * and there is no back-off.
 */
export class RemoteKeys {
  readonly #options: RemoteKeysOptions;
  readonly #provider: Provider;
  readonly #nowMs: () => number;
  #keys: LocalJWKSet | undefined;
  #fetching: Promise<void> | undefined;
  #triedMs = Number.NEGATIVE_INFINITY;
  #fetchedMs = Number.NEGATIVE_INFINITY;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#provider = new Provider({ ...options, name: 'jwks', backoff: BACKOFF });
  }

  /** Fetches the keys before the first token asks for them. */
  async warmUp(): Promise<void> {
    await this.#fetch();
  }

  /** The key of a token's header. Throws KeysUnavailable, or what jose throws where no key fits. */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (this.#keys === undefined) await this.#fetch();
    else if (this.#nowMs() - this.#fetchedMs > REFRESH_MS) void this.#fetch();
    const keys = this.#keys;
    if (keys === undefined) throw new KeysUnavailable('the issuer has given no keys yet');
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return await this.#findAfterRotation(header, token, error);
    }
  }

  async #findAfterRotation(
    header: JWSHeaderParameters,
    token: FlattenedJWSInput,
    error: errors.JWKSNoMatchingKey,
  ): Promise<CryptoKey> {
    const isCool = this.#nowMs() - this.#triedMs >= this.#options.cooldownMs;
    if (isCool || this.#fetching !== undefined) await this.#fetch();
    // The key may be a new one that nobody could fetch: the client is not told that its token is bad.
    if (this.#provider.isFailing) throw new KeysUnavailable('the issuer cannot be asked for new keys');
    if (this.#keys === undefined) throw error;
    return await this.#keys(header, token);
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNow().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchNow(): Promise<void> {
    const init = { headers: { Accept: 'application/jwk-set+json, application/json' } };
    const answer = await this.#provider.ask(
      { url: this.#options.url, init, asker: 'the gateway' },
      (body) => {
        if (!isKeySet(body)) throw new Error('answered no key set');
      },
    );
    this.#triedMs = this.#nowMs();
    if (answer === 'unavailable') return;
    this.#keys = createLocalJWKSet(answer.body as JSONWebKeySet);
    this.#fetchedMs = this.#triedMs;
    this.#options.observer.keysFetched(Date.now());
  }
}

/** An empty set is a mistake of the issuer's, not a reason to lock everybody out. */
function isKeySet(body: unknown): body is JSONWebKeySet {
  const { keys } = (body ?? {}) as { keys?: unknown };
  return Array.isArray(keys) && keys.length > 0 && keys.every((key) => typeof key?.kty === 'string');
}
