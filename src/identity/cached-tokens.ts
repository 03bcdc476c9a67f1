import { type Awaitable, isLate } from '../domain/awaitable.ts';
import type { Principal } from '../domain/caller.ts';
import { digestOf, presentedDigest } from '../domain/token-digest.ts';
import type { Revocations } from '../facts/revocations.ts';
import { type IdentityObserver, outcomeOf, type SourceName } from './identity-observer.ts';
import type { Authentication, Client, IdentitySource, TokenFault } from './identity-source.ts';
import { type LoadedKey, LookupCache } from './lookup-cache.ts';

/** The result of verifying a token. */
export type Verified =
  | {
      readonly outcome: 'known';
      readonly principal: Principal;
      /** Unix time at which the token expires; undefined if unknown. */
      readonly expiresAtMs: number | undefined;
      /** Unix time at which the issuer signed the token, or at which the introspection request was sent. */
      readonly confirmedAtMs: number;
    }
  | {
      readonly outcome: 'invalid';
      /** Whether the token will not become valid before `validFromMs`, so that the result can be cached until then. */
      readonly isFinal: boolean;
      readonly fault: TokenFault;
      /** Unix time at which the token becomes valid; undefined if it never does, or nobody knows. */
      readonly validFromMs?: number | undefined;
    }
  | { readonly outcome: 'unavailable' };

/** Verifies tokens, without caching. */
export interface Verifier {
  /** Must not reject. `client` identifies the client that sent the request. */
  verify(token: string, client: string): Promise<Verified>;
  /** The other form of this token that could also be accepted, if there is one. A revocation covers both. */
  twinOf?(token: string): string | undefined;
}

interface CachedTokensOptions {
  readonly source: SourceName;
  readonly verifier: Verifier;
  /** How long a verified token is cached. */
  readonly freshMs: number;
  /** How long a finally refused token is cached. */
  readonly refusedMs: number;
  /** How much longer a verified token is accepted while the provider is unavailable. */
  readonly outageMs: number;
  readonly maxTokens: number;
  readonly revocations: Revocations;
  readonly observer: IdentityObserver;
  /** Unix time, by which tokens expire. */
  readonly nowMs?: () => number;
  /** The clock by which results get old. */
  readonly monotonicMs?: () => number;
}

/** A token to verify, and the client that sent it. */
interface PresentedToken {
  readonly token: string;
  readonly client: Client | undefined;
}

/** A verified token. */
interface VerifiedToken {
  readonly principal: Principal;
  readonly confirmedAtMs: number;
  /** Unix time; infinite if unknown. */
  readonly expiresAtMs: number;
  /** The digests of all its forms. The first is of the form that was presented. */
  readonly digests: readonly [string, ...string[]];
  /** Whether its principal was revoked already when it was verified: to verify it again at once would give the same. */
  readonly wasRevoked: boolean;
}

/** b64token of RFC 6750 section 2.1, with a length limit: Node accepts at most 16 KiB of headers in all. */
const TOKEN = /^[A-Za-z0-9\-._~+/]{1,8192}={0,2}$/;

/**
 * Caches the results of a verifier by the SHA-256 of the whole token, so no token stays in memory. A result is never used
 * after the token expires, or after it is revoked in any of its forms.
 */
export class CachedTokens implements IdentitySource {
  readonly #options: CachedTokensOptions;
  readonly #nowMs: () => number;
  readonly #cache: LookupCache<VerifiedToken, PresentedToken, TokenFault>;

  constructor(options: CachedTokensOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#cache = new LookupCache(
      options.maxTokens,
      (presented: PresentedToken, digest) => this.#load(presented, digest),
      options.monotonicMs,
    );
  }

  principalOf(token: string, client?: Client): Awaitable<Authentication> {
    const { revocations } = this.#options;
    const digest = presentedDigest(token, client?.lastDigest);
    // Revocations are looked up for each request, so that many of them cost nothing but a look-up.
    if (!revocations.isEmpty) this.#cache.forget(digest, (known) => this.#isOutdated(known));
    const answer = this.#cache.get(digest, { token, client });
    if (isLate(answer)) return answer.then((one) => this.#counted(digest, one, false));
    return this.#counted(digest, answer, true);
  }

  #counted(
    digest: string,
    found: VerifiedToken | TokenFault | 'unavailable',
    isCached: boolean,
  ): Authentication {
    const { observer, source, revocations } = this.#options;
    let answer: Authentication;
    if (typeof found === 'object') answer = this.#unlessEnded(found);
    else answer = found === 'unavailable' ? found : (revocations.refuse([digest]) ?? found);
    observer.identified(source, outcomeOf(answer), isCached);
    return answer;
  }

  #unlessEnded({ digests, principal, confirmedAtMs, expiresAtMs }: VerifiedToken): Authentication {
    const revoked = this.#options.revocations.refuse(digests, principal.id, confirmedAtMs);
    // The clock may have been set forward since the token was verified.
    return revoked ?? (expiresAtMs <= this.#nowMs() ? 'expired' : principal);
  }

  /** Whether the principal was revoked after the token had been signed or confirmed, and verified. */
  #isOutdated({ principal, confirmedAtMs, wasRevoked }: VerifiedToken): boolean {
    return !wasRevoked && this.#options.revocations.ofPrincipal(principal.id, confirmedAtMs) !== undefined;
  }

  async #load(
    { token, client }: PresentedToken,
    digest: string,
  ): Promise<LoadedKey<VerifiedToken, TokenFault>> {
    if (!TOKEN.test(token)) return { miss: 'malformed', freshForMs: 0 };
    const { verifier, revocations, refusedMs, freshMs, outageMs } = this.#options;
    const verified = await verifier.verify(token, client?.clientNetwork ?? '');
    if (verified.outcome === 'unavailable') return 'unavailable';
    if (verified.outcome === 'invalid') {
      const { fault, isFinal, validFromMs = Number.POSITIVE_INFINITY } = verified;
      return { miss: fault, freshForMs: isFinal ? Math.min(refusedMs, validFromMs - this.#nowMs()) : 0 };
    }
    const { principal, confirmedAtMs, expiresAtMs = Number.POSITIVE_INFINITY } = verified;
    const leftMs = expiresAtMs - this.#nowMs();
    if (leftMs <= 0) return { miss: 'expired', freshForMs: refusedMs };
    const twin = verifier.twinOf?.(token);
    const wasRevoked = revocations.ofPrincipal(principal.id, confirmedAtMs) !== undefined;
    const value: VerifiedToken = {
      principal,
      confirmedAtMs,
      expiresAtMs,
      digests: twin === undefined ? [digest] : [digest, digestOf(twin)],
      wasRevoked,
    };
    const freshForMs = Math.min(leftMs, wasRevoked ? refusedMs : freshMs);
    return { value, freshForMs, usableForMs: Math.min(leftMs, freshForMs + outageMs) };
  }
}
