import type { Making } from './fact-record.ts';
import { type Fact, Facts } from './facts.ts';
import type { ChangeReason } from './operator-facts.ts';
import { principalKey, REVOCATIONS, targetKey, tokenKey } from './revocation-message.ts';

/** The target of a revocation: one token, or all tokens that a principal was issued up to the time of the revocation. */
export type Revoked =
  | { readonly kind: 'token'; readonly digestHex: string }
  | { readonly kind: 'principal'; readonly id: string };

export interface Revocation extends Fact {
  readonly revoked: Revoked;
  /** Undefined for `weir revoke`, which does not ask for one. */
  readonly reason?: ChangeReason;
}

/** The result for a revoked token, which other tokens have a principal for. */
export class RevokedToken {
  /** SHA-256 of the token, as a latin1 string. */
  readonly digest: string;
  /** What refuses it. */
  readonly by: Revocation;

  constructor(digest: string, by: Revocation) {
    this.digest = digest;
    this.by = by;
  }

  get digestHex(): string {
    return Buffer.from(this.digest, 'latin1').toString('hex');
  }
}

/** The revocations in force in this process. */
export class Revocations extends Facts<Revocation> {
  readonly #nowMs: () => number;

  /** @param nowMs Unix time by the clock that all replicas share */
  constructor(nowMs: () => number = Date.now) {
    super(REVOCATIONS);
    this.#nowMs = nowMs;
  }

  /** Unix time by the clock that revocations are made and expire by. */
  get nowMs(): number {
    return this.#nowMs();
  }

  /**
   * Applies a revocation. Returns false if it changes nothing. The latest of the revocations of a target and their undoings wins,
   * regardless of the order of arrival.
   */
  override add(revocation: Revocation, nowMs = this.#nowMs()): boolean {
    return super.add(revocation, nowMs);
  }

  /**
   * The token as a revoked one, if it or its principal is revoked. A principal's revocation does not apply to tokens that
   * were signed, or confirmed by the provider, after it.
   *
   * @param digests SHA-256 of each form of the token, as latin1 strings; the first is of the form that was presented
   * @param principal undefined for a token that nobody knows, or no longer
   * @param confirmedAtMs when the token was signed or confirmed; undefined if unknown
   */
  refuse(
    digests: readonly [string, ...string[]],
    principal?: string,
    confirmedAtMs?: number,
    atMs?: number,
  ): RevokedToken | undefined {
    if (this.isEmpty) return undefined;
    const nowMs = atMs ?? this.#nowMs();
    for (const digest of digests) {
      const ofToken = this.findInForce(tokenKey(digest), nowMs);
      if (ofToken !== undefined) return new RevokedToken(digests[0], ofToken);
    }
    const ofPrincipal =
      principal === undefined ? undefined : this.ofPrincipal(principal, confirmedAtMs, nowMs);
    return ofPrincipal && new RevokedToken(digests[0], ofPrincipal);
  }

  /** What revokes the tokens of a principal that were signed or confirmed at this time. */
  ofPrincipal(
    principal: string,
    confirmedAtMs: number | undefined,
    nowMs = this.#nowMs(),
  ): Revocation | undefined {
    const revocation = this.findInForce(principalKey(principal), nowMs);
    const isLater =
      revocation !== undefined && confirmedAtMs !== undefined && confirmedAtMs > revocation.atMs;
    return isLater ? undefined : revocation;
  }
}

/** Revokes a target. One that is revoked for longer already, or at the same time, stays so. */
export function revoking(revoked: Revoked, forMs: number, reason?: ChangeReason): Making<Revocation> {
  return {
    keys: [targetKey(revoked)],
    readsRecord: true,
    keepsLonger: true,
    make(atMs, [current]) {
      const isRevoked = current !== undefined && !current.isRemoved;
      const untilMs = Math.max(Math.ceil(atMs + forMs), isRevoked ? current.untilMs : 0);
      return [{ revoked, atMs, untilMs, ...(reason && { reason }) }];
    },
  };
}

/** Undoes a revocation. Makes nothing if the target is not revoked. */
export function undoing(revoked: Revoked, reason?: ChangeReason): Making<Revocation> {
  return {
    keys: [targetKey(revoked)],
    readsRecord: true,
    make(atMs, [current]) {
      if (current === undefined || current.isRemoved) return [];
      return [{ revoked, atMs, untilMs: current.untilMs, isRemoved: true, ...(reason && { reason }) }];
    },
  };
}
