import type { Logger } from 'pino';
import type { Replicas } from './replicas.ts';

/** What came from Redis. `key`: a whole key. */
export const SHARED_KINDS = ['limit', 'revocation', 'block', 'summary', 'key'] as const;

export type SharedKind = (typeof SHARED_KINDS)[number];

/**
 * `length`: too long to be read. `form`: it does not match its schema, or is out of bounds. `failed`: it could not be applied. `type`:
 * the key holds another type. The next write replaces it.
 */
export const IGNORED_REASONS = ['length', 'form', 'failed', 'type'] as const;

type IgnoredReason = (typeof IGNORED_REASONS)[number];

/** Receives what happens to what the replicas share. The metrics implement it. */
export interface SharedObserver {
  /** Something that another replica or another program wrote to Redis was ignored. */
  sharedIgnored(kind: SharedKind, reason: IgnoredReason, count: number): void;
  /** Shows how far the process's own clock is ahead of the clock of Redis; undefined while it is unknown. */
  showClock(offsetMs: () => number | undefined): void;
  /** Shows how many replicas share the store, and how long ago that was seen. */
  showReplicas(replicas: Replicas): void;
}

/** Counts what is ignored, and logs it once for each reason. The content is not logged, because it may be a token. */
export class Ignored {
  readonly #kind: SharedKind;
  readonly #observer: Pick<SharedObserver, 'sharedIgnored'>;
  readonly #log: Logger;
  readonly #logged = new Set<IgnoredReason>();

  constructor(kind: SharedKind, observer: Pick<SharedObserver, 'sharedIgnored'>, log: Logger) {
    this.#kind = kind;
    this.#observer = observer;
    this.#log = log;
  }

  add(reason: IgnoredReason, count = 1, problem?: string): void {
    this.#observer.sharedIgnored(this.#kind, reason, count);
    if (this.#logged.has(reason)) return;
    this.#logged.add(reason);
    this.#log.warn(
      { kind: this.#kind, reason, problem },
      'what Redis holds is ignored: no replica of this version wrote it',
    );
  }
}
