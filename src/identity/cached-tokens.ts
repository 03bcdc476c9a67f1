import type { Principal } from '../domain/caller.ts';
import type { Answer, Client, IdentitySource, Lookup } from './identity.ts';
import { type Loaded, LookupCache } from './lookup-cache.ts';
import type { IdentityObserver, SourceName } from './observer.ts';
import type { Revocations } from './revocations.ts';
import { digestOf, digestOfHex } from './token-digest.ts';

/** What checking a token came to. */
export type Verified =
  | {
      readonly outcome: 'known';
      readonly principal: Principal;
      /** Unix time at which the token ends; undefined where nobody says. */
      readonly expiresAtMs: number | undefined;
      /** Unix time at which its issuer vouched for it last: signed it, or was asked. */
      readonly vouchedAtMs: number;
    }
  /** `isFinal`: it will not become valid, so there is no need to look again soon. */
  | { readonly outcome: 'invalid'; readonly isFinal: boolean }
  | { readonly outcome: 'unavailable' };

/** Checks tokens, each time anew. */
export interface Verifier {
  /** Must not reject. `client` names whose request it is. */
  verify(token: string, client: string): Promise<Verified>;
  /** Another token that would be verified because this one was, and that a revocation may have meant. */
  twinOf?(token: string): string | undefined;
}

export interface CachedTokensOptions {
  readonly source: SourceName;
  readonly verifier: Verifier;
  /** For how long a verified token is not verified again. */
  readonly freshMs: number;
  /** For how long a token that was refused for good is not looked at again. */
  readonly refusedMs: number;
  /** How much longer a verified token goes on while nobody can verify it. */
  readonly outageMs: number;
  readonly maxTokens: number;
  readonly revocations: Revocations;
  readonly observer: IdentityObserver;
  /** Unix time. */
  readonly nowMs?: () => number;
}

/** A token to look up, and who sent it. */
interface Asked {
  readonly token: string;
  readonly client: Client | undefined;
}

/** RFC 6750 section 2.1, b64token. Longer ones are no tokens but attacks: Node takes 16 KiB of header in all. */
const TOKEN = /^[A-Za-z0-9\-._~+/]{1,8192}={0,2}$/;

/**
 * Remembers what a verifier said of a token, under the SHA-256 of the whole token: a token that differs in one bit is
 * another one, and no token stays in memory. Never past the token's end, never past a revocation.
 */
export class CachedTokens implements IdentitySource {
  readonly #options: CachedTokensOptions;
  readonly #nowMs: () => number;
  readonly #cache: LookupCache<Principal, Asked>;

  constructor(options: CachedTokensOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#cache = new LookupCache({
      load: (asked: Asked, digest) => this.#load(asked, digest),
      maxKeys: options.maxTokens,
      nowMs: this.#nowMs,
    });
    options.revocations.onRevoked((revoked) => {
      if (revoked.kind === 'token') this.#cache.forget(digestOfHex(revoked.digestHex));
      else this.#cache.forget(({ id }) => id === revoked.id);
    });
  }

  principalOf(token: string, client?: Client): Lookup<Principal> {
    const digest = digestOf(token);
    const answer = this.#cache.get(digest, { token, client });
    if (answer instanceof Promise) return answer.then((one) => this.#counted(one, false));
    return this.#counted(answer, true);
  }

  #counted(answer: Answer<Principal>, isCached: boolean): Answer<Principal> {
    const { observer, source } = this.#options;
    observer.identified(source, outcomeOf(answer), isCached);
    return answer;
  }

  async #load({ token, client }: Asked, digest: string): Promise<Loaded<Principal>> {
    if (!TOKEN.test(token)) return { value: undefined, freshUntilMs: 0 };
    const { verifier, refusedMs, freshMs, outageMs } = this.#options;
    const verified = await verifier.verify(token, client?.() ?? '');
    const nowMs = this.#nowMs();
    if (verified.outcome === 'unavailable') return 'unavailable';
    if (verified.outcome === 'invalid') {
      return { value: undefined, freshUntilMs: verified.isFinal ? nowMs + refusedMs : 0 };
    }
    const { principal, vouchedAtMs, expiresAtMs = Number.POSITIVE_INFINITY } = verified;
    if (expiresAtMs <= nowMs || this.#isRevoked(token, digest, principal.id, vouchedAtMs)) {
      return { value: undefined, freshUntilMs: nowMs + refusedMs };
    }
    const freshUntilMs = Math.min(expiresAtMs, nowMs + freshMs);
    return { value: principal, freshUntilMs, usableUntilMs: Math.min(expiresAtMs, freshUntilMs + outageMs) };
  }

  #isRevoked(token: string, digest: string, principal: string, vouchedAtMs: number): boolean {
    const { revocations, verifier } = this.#options;
    if (revocations.isEmpty) return false;
    const nowMs = this.#nowMs();
    if (revocations.covers(digest, principal, vouchedAtMs, nowMs)) return true;
    const twin = verifier.twinOf?.(token);
    return twin !== undefined && revocations.covers(digestOf(twin), principal, vouchedAtMs, nowMs);
  }
}

function outcomeOf(answer: Answer<Principal>): 'known' | 'invalid' | 'unavailable' {
  if (answer === undefined) return 'invalid';
  return answer === 'unavailable' ? answer : 'known';
}
