import { digestOfHex } from './token-digest.ts';

/** The target of a revocation: one token, or all tokens that a principal was issued up to the time of the revocation. */
export type Revoked =
  | { readonly kind: 'token'; readonly digestHex: string }
  | { readonly kind: 'principal'; readonly id: string };

/** Who revoked or undid, and why, as far as the sender stated it. */
export interface RevocationReason {
  readonly why: string;
  readonly by: string;
}

export interface Revocation {
  readonly revoked: Revoked;
  /** Unix time of the revocation, or of its undoing. */
  readonly atMs: number;
  /** Unix time until which to keep it. */
  readonly untilMs: number;
  /** Whether this undoes an earlier revocation. */
  readonly isUndone?: boolean;
  /** Undefined for `weir revoke`, which does not ask for one. */
  readonly reason?: RevocationReason;
}

/** Far more than are ever revoked by hand. The oldest is evicted. */
const MAX_REVOCATIONS = 100_000;

/** The revocations in force in this process. */
export class Revocations {
  readonly #tokens = new Map<string, Revocation>();
  readonly #principals = new Map<string, Revocation>();
  readonly #listeners: ((revoked: Revoked) => void)[] = [];

  get isEmpty(): boolean {
    return this.#tokens.size === 0 && this.#principals.size === 0;
  }

  /** Calls `listener` after every revocation and every undoing has been applied. */
  onRevoked(listener: (revoked: Revoked) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Applies a revocation. Returns false if it changes nothing. The later of a revocation and its undoing wins, regardless of
   * the order of arrival.
   */
  add(revocation: Revocation, nowMs = Date.now()): boolean {
    const { revoked, untilMs } = revocation;
    if (untilMs <= nowMs) return false;
    const [revocations, key] =
      revoked.kind === 'token'
        ? ([this.#tokens, digestOfHex(revoked.digestHex)] as const)
        : ([this.#principals, revoked.id] as const);
    const before = revocations.get(key);
    const after = before === undefined ? revocation : merged(before, revocation);
    if (after === before) return false;
    revocations.delete(key);
    revocations.set(key, after);
    makeRoom(revocations, nowMs);
    for (const listener of this.#listeners) listener(revoked);
    return true;
  }

  /** All entries that have not expired, including undone ones. */
  remembered(nowMs = Date.now()): readonly Revocation[] {
    const all = [...this.#tokens.values(), ...this.#principals.values()];
    return all.filter(({ untilMs }) => nowMs < untilMs);
  }

  /**
   * Whether a token is revoked, directly or through its principal. A principal's revocation does not apply to tokens that were
   * signed, or confirmed by the provider, after it.
   *
   * @param digest SHA-256 of the token, as a latin1 string
   * @param confirmedAtMs when the token was signed or confirmed; undefined if unknown
   */
  covers(digest: string, principal: string, confirmedAtMs: number | undefined, nowMs = Date.now()): boolean {
    if (this.isEmpty) return false;
    if (isInForce(this.#tokens.get(digest), nowMs)) return true;
    const ofPrincipal = this.#principals.get(principal);
    if (!isInForce(ofPrincipal, nowMs)) return false;
    return confirmedAtMs === undefined || confirmedAtMs <= ofPrincipal.atMs;
  }
}

function isInForce(revocation: Revocation | undefined, nowMs: number): revocation is Revocation {
  return revocation !== undefined && !revocation.isUndone && nowMs < revocation.untilMs;
}

/** Merges two entries for the same target. Returns `before` itself if `other` changes nothing. */
function merged(before: Revocation, other: Revocation): Revocation {
  if (Boolean(before.isUndone) !== Boolean(other.isUndone)) {
    // If both have the same time, the target stays revoked.
    const isLater = before.isUndone ? other.atMs >= before.atMs : other.atMs > before.atMs;
    return isLater ? other : before;
  }
  if (before.atMs >= other.atMs && before.untilMs >= other.untilMs) return before;
  return {
    ...(other.atMs > before.atMs ? other : before),
    atMs: Math.max(before.atMs, other.atMs),
    untilMs: Math.max(before.untilMs, other.untilMs),
  };
}

function makeRoom(revocations: Map<string, Revocation>, nowMs: number): void {
  if (revocations.size <= MAX_REVOCATIONS) return;
  for (const [key, { untilMs }] of revocations) if (untilMs <= nowMs) revocations.delete(key);
  const [oldest] = revocations.keys();
  if (revocations.size > MAX_REVOCATIONS && oldest !== undefined) revocations.delete(oldest);
}
