import { digestOfHex } from './token-digest.ts';

/** What no longer authenticates: one token, or what a principal was given up to a moment. */
export type Revoked =
  | { readonly kind: 'token'; readonly digestHex: string }
  | { readonly kind: 'principal'; readonly id: string };

export interface Revocation {
  readonly revoked: Revoked;
  /** Unix time at which it was revoked. */
  readonly atMs: number;
  /** Unix time until which that has to be remembered. */
  readonly untilMs: number;
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

  /** `listener` is called for every new revocation, once it is in force. */
  onRevoked(listener: (revoked: Revoked) => void): void {
    this.#listeners.push(listener);
  }

  /** Puts it in force; false when it was in force already. */
  add(revocation: Revocation, nowMs = Date.now()): boolean {
    const { revoked, atMs, untilMs } = revocation;
    if (untilMs <= nowMs) return false;
    const [revocations, key] =
      revoked.kind === 'token'
        ? ([this.#tokens, digestOfHex(revoked.digestHex)] as const)
        : ([this.#principals, revoked.id] as const);
    const before = revocations.get(key);
    if (before !== undefined && before.atMs >= atMs && before.untilMs >= untilMs) return false;
    revocations.delete(key);
    revocations.set(key, revocation);
    makeRoom(revocations, nowMs);
    for (const listener of this.#listeners) listener(revoked);
    return true;
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
    const ofToken = this.#tokens.get(digest);
    if (ofToken !== undefined && nowMs < ofToken.untilMs) return true;
    const ofPrincipal = this.#principals.get(principal);
    if (ofPrincipal === undefined || nowMs >= ofPrincipal.untilMs) return false;
    return vouchedAtMs === undefined || vouchedAtMs <= ofPrincipal.atMs;
  }
}

function makeRoom(revocations: Map<string, Revocation>, nowMs: number): void {
  if (revocations.size <= MOST_REVOCATIONS) return;
  for (const [key, { untilMs }] of revocations) if (untilMs <= nowMs) revocations.delete(key);
  const [oldest] = revocations.keys();
  if (revocations.size > MOST_REVOCATIONS && oldest !== undefined) revocations.delete(oldest);
}
