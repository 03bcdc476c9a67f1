import { type Fact, Facts } from '../shared/facts.ts';
import { principalKey, REVOCATIONS, tokenKey } from './revocation-message.ts';

/** The target of a revocation: one token, or all tokens that a principal was issued up to the time of the revocation. */
export type Revoked =
  | { readonly kind: 'token'; readonly digestHex: string }
  | { readonly kind: 'principal'; readonly id: string };

/** Who revoked or undid, and why, as far as the sender stated it. */
export interface RevocationReason {
  readonly why: string;
  readonly by: string;
}

export interface Revocation extends Fact {
  readonly revoked: Revoked;
  /** Whether this undoes an earlier revocation. */
  readonly isUndone?: boolean;
  /** Undefined for `weir revoke`, which does not ask for one. */
  readonly reason?: RevocationReason;
}

/** The revocations in force in this process. */
export class Revocations {
  readonly facts = new Facts(REVOCATIONS);
  readonly #nowMs: () => number;

  /** @param nowMs Unix time by the clock that all replicas share */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** Unix time by the clock that revocations are made and expire by. */
  get nowMs(): number {
    return this.#nowMs();
  }

  get isEmpty(): boolean {
    return this.facts.size === 0;
  }

  /**
   * Applies a revocation. Returns false if it changes nothing. The latest of the revocations of a target and their undoings wins,
   * regardless of the order of arrival.
   */
  add(revocation: Revocation, nowMs = this.#nowMs()): boolean {
    return this.facts.add(revocation, nowMs);
  }

  /** All entries that have not expired, including undone ones. */
  remembered(nowMs = this.#nowMs()): readonly Revocation[] {
    return this.facts.remembered(nowMs);
  }

  /**
   * Whether a token is revoked, directly or through its principal. A principal's revocation does not apply to tokens that were
   * signed, or confirmed by the provider, after it.
   *
   * @param digest SHA-256 of the token, as a latin1 string
   * @param confirmedAtMs when the token was signed or confirmed; undefined if unknown
   */
  covers(
    digest: string,
    principal: string,
    confirmedAtMs: number | undefined,
    nowMs = this.#nowMs(),
  ): boolean {
    return this.hasToken(digest, nowMs) || this.coversPrincipal(principal, confirmedAtMs, nowMs);
  }

  /** Whether the token with this digest is revoked. */
  hasToken(digest: string, nowMs = this.#nowMs()): boolean {
    return this.#inForce(tokenKey(digest), nowMs) !== undefined;
  }

  /** Whether the tokens of a principal that were signed or confirmed at this time are revoked. */
  coversPrincipal(principal: string, confirmedAtMs: number | undefined, nowMs = this.#nowMs()): boolean {
    const ofPrincipal = this.#inForce(principalKey(principal), nowMs);
    if (ofPrincipal === undefined) return false;
    return confirmedAtMs === undefined || confirmedAtMs <= ofPrincipal.atMs;
  }

  #inForce(key: string, nowMs: number): Revocation | undefined {
    if (this.isEmpty) return undefined;
    const revocation = this.facts.find(key, nowMs);
    return revocation?.isUndone ? undefined : revocation;
  }
}
