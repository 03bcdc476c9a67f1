import { type CryptoKey, errors, type FlattenedJWSInput, type JWK, type JWSHeaderParameters } from 'jose';
import { Attempts } from '../provider/attempts.ts';
import { Provider, type Reporting } from '../provider/provider.ts';
import { UnusableAnswer } from '../provider/provider-answer.ts';
import { type FindPublicKey, publicKeysOf } from './key-set.ts';

interface RemoteKeysOptions extends Reporting {
  readonly url: string;
  readonly timeoutMs: number;
  /** Minimum time between two fetches for tokens that are signed with an unknown key, or have a wrong signature. */
  readonly cooldownMs: number;
  /** A monotonic clock. */
  readonly nowMs?: () => number;
}

/** Thrown if a key is unknown and the issuer's current keys could not be fetched. */
export class KeysUnavailable extends Error {}

/** Interval of the background refresh, so that a new key is fetched before tokens are signed with it. */
const REFRESH_MS = 300_000;

/**
 * An issuer's keys, fetched over HTTP. Concurrent tokens share one fetch. An unknown key or a wrong signature triggers a fetch at most
 * once per cooldown. While the issuer is down, the last good keys stay in use. A token cannot change the URL.
 *
 * jose's `createRemoteJWKSet` is not used, because a request that finds the keys stale waits for the refresh and fails with
 * it, and because it has no backoff.
 */
export class RemoteKeys {
  readonly #options: RemoteKeysOptions;
  readonly #provider: Provider;
  readonly #nowMs: () => number;
  #keys: FindPublicKey | undefined;
  /** The text of the keys. */
  #version = '';
  #fetching: Promise<void> | undefined;
  /** Members of the last key set that are not keys. */
  #ignored = 0;
  #triedMs = Number.NEGATIVE_INFINITY;
  #fetchedMs = Number.NEGATIVE_INFINITY;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    // Waits after the first failure, because the last good keys stay in use meanwhile.
    const attempts = new Attempts(0, 500, 15_000);
    this.#provider = new Provider({ ...options, name: 'jwks', attempts });
  }

  /** Fetches the keys before the first token needs them. */
  async warmUp(): Promise<void> {
    await this.#fetch();
  }

  /** Another text whenever a fetch has brought other keys. */
  get version(): string {
    return this.#version;
  }

  /**
   * Whether there are other keys than a version had. Fetches them if the cooldown allows it: an issuer may replace a key under its id, or
   * give its keys no ids.
   */
  async renew(version: string): Promise<boolean> {
    if (this.#version === version && this.#mayFetch) await this.#fetch();
    return this.#version !== version;
  }

  /** The key for a token's header. Throws KeysUnavailable, or a jose error if no key matches. */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (this.#keys === undefined) await this.#fetch();
    else if (this.#nowMs() - this.#fetchedMs > REFRESH_MS) void this.#fetch();
    const keys = this.#keys;
    if (keys === undefined) throw new KeysUnavailable('the keys have not been fetched yet');
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
    if (this.#mayFetch) await this.#fetch();
    // The key may be new. Do not report the token as invalid while the current keys cannot be fetched.
    if (this.#provider.isFailing) throw new KeysUnavailable('the keys cannot be fetched');
    if (this.#keys === undefined) throw error;
    return await this.#keys(header, token);
  }

  /** Whether a token may wait for a fetch. */
  get #mayFetch(): boolean {
    return this.#fetching !== undefined || this.#nowMs() - this.#triedMs >= this.#options.cooldownMs;
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNow().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchNow(): Promise<void> {
    const init = { headers: { Accept: 'application/jwk-set+json, application/json' } };
    const answer = await this.#provider.call(
      { url: this.#options.url, init, requester: 'the gateway' },
      (body) => {
        if (keysOf(body).length === 0) throw new UnusableAnswer('the answer is not a key set');
      },
    );
    this.#triedMs = this.#nowMs();
    if (answer === 'unavailable') return;
    const keys = this.#usable(answer.body);
    const isFirst = this.#keys === undefined;
    this.#keys = publicKeysOf({ keys });
    this.#version = JSON.stringify(keys);
    this.#fetchedMs = this.#triedMs;
    if (isFirst) this.#options.observer.showKeysAge(() => (this.#nowMs() - this.#fetchedMs) / 1_000);
  }

  /** Logs broken members when there are more than before. */
  #usable(body: unknown): JWK[] {
    const keys = keysOf(body);
    const ignored = membersOf(body).length - keys.length;
    if (ignored > this.#ignored)
      this.#options.log.warn({ ignored }, 'the key set has members that are not keys');
    this.#ignored = ignored;
    return keys;
  }
}

/** The members that are keys: a broken one does not exclude the others. A set without any does not replace the last good one. */
function keysOf(body: unknown): JWK[] {
  const members = membersOf(body);
  return members.filter((key): key is JWK => typeof (key as Partial<JWK> | null)?.kty === 'string');
}

function membersOf(body: unknown): readonly unknown[] {
  const { keys } = (body ?? {}) as { keys?: unknown };
  return Array.isArray(keys) ? keys : [];
}
