import { digestOfHex } from './token-digest.ts';

/** What no longer authenticates: one token, or what a principal was given up to a moment. */
export type Revoked =
  | { readonly kind: 'token'; readonly digestHex: string }
  | { readonly kind: 'principal'; readonly id: string };

export interface Revocation {
  readonly revoked: Revoked;
  /** Unix time at which it was revoked, or at which the revocation was undone. */
  readonly atMs: number;
  /** Unix time until which that has to be remembered. */
  readonly untilMs: number;
  /** It was revoked before and authenticates again. */
  readonly isUndone?: boolean;
}

/** Far more than anybody revokes by hand; the oldest makes room. */
const MOST_REVOCATIONS = 100_000;

/** The revocations in force in this process, and whoever has to act on a new one. */
export class Revocations {
  readonly #tokens = new Map<string, Revocation>();
  readonly #principals = new Map<string, Revocation>();
  readonly #listeners: ((revoked: Revoked) => void)[] = [];

  get isEmpty(): boolean {
    return this.#tokens.size === 0 && this.#principals.size === 0;
  }

  /** `listener` is called for every new revocation, and for every one that is undone, once it is in force. */
  onRevoked(listener: (revoked: Revoked) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Puts it in force; false when it was in force already, or something newer is. Of a revocation and its undoing the
   * later one counts, in whatever order they arrive.
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

  /** All that has to be remembered, what is undone included. */
  remembered(nowMs = Date.now()): readonly Revocation[] {
    const all = [...this.#tokens.values(), ...this.#principals.values()];
    return all.filter(({ untilMs }) => nowMs < untilMs);
  }

  /**
   * Whether a token is revoked, by itself or through its principal. A principal's revocation leaves alone what was
   * vouched for after it: a token signed later, an answer of the provider to a later question.
   *
   * @param digest of the token, SHA-256, its bytes as a latin1 string
   * @param vouchedAtMs undefined where nobody can tell
   */
  covers(digest: string, principal: string, vouchedAtMs: number | undefined, nowMs = Date.now()): boolean {
    if (this.isEmpty) return false;
    if (isInForce(this.#tokens.get(digest), nowMs)) return true;
    const ofPrincipal = this.#principals.get(principal);
    if (!isInForce(ofPrincipal, nowMs)) return false;
    return vouchedAtMs === undefined || vouchedAtMs <= ofPrincipal.atMs;
  }
}

function isInForce(revocation: Revocation | undefined, nowMs: number): revocation is Revocation {
  return revocation !== undefined && !revocation.isUndone && nowMs < revocation.untilMs;
}

/** What two messages about one target come to; `before` itself where the other one adds nothing to it. */
function merged(before: Revocation, other: Revocation): Revocation {
  if (Boolean(before.isUndone) !== Boolean(other.isUndone)) {
    // At the same moment it stays revoked.
    const isLater = before.isUndone ? other.atMs >= before.atMs : other.atMs > before.atMs;
    return isLater ? other : before;
  }
  if (before.atMs >= other.atMs && before.untilMs >= other.untilMs) return before;
  return {
    ...before,
    atMs: Math.max(before.atMs, other.atMs),
    untilMs: Math.max(before.untilMs, other.untilMs),
  };
}

function makeRoom(revocations: Map<string, Revocation>, nowMs: number): void {
  if (revocations.size <= MOST_REVOCATIONS) return;
  for (const [key, { untilMs }] of revocations) if (untilMs <= nowMs) revocations.delete(key);
  const [oldest] = revocations.keys();
  if (revocations.size > MOST_REVOCATIONS && oldest !== undefined) revocations.delete(oldest);
}
