import { pace } from '../domain/pace.ts';
import type { Fact, FactKind } from './facts.ts';

/** Reports facts that end by themselves, once each and at most a second late. */
export class Ends<T extends Fact> {
  readonly #kind: Pick<FactKind<T>, 'keyOf'>;
  readonly #nowMs: () => number;
  readonly #ended: (fact: T) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #open = new Map<string, T>();
  #nextMs = Number.POSITIVE_INFINITY;

  /** @param nowMs Unix time by the clock that all replicas share */
  constructor(kind: Pick<FactKind<T>, 'keyOf'>, nowMs: () => number, ended: (fact: T) => void) {
    this.#kind = kind;
    this.#nowMs = nowMs;
    this.#ended = ended;
    this.#timer = setInterval(() => this.look(), pace.endsMs).unref();
  }

  /** A fact is in force, in place of the one about the same; or it removes that. */
  add(fact: T): void {
    const key = this.#kind.keyOf(fact);
    if (fact.isRemoved) this.#open.delete(key);
    else {
      this.#open.set(key, fact);
      this.#nextMs = Math.min(this.#nextMs, fact.untilMs);
    }
  }

  look(): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextMs) return;
    this.#nextMs = Number.POSITIVE_INFINITY;
    for (const [key, fact] of this.#open) {
      if (nowMs < fact.untilMs) this.#nextMs = Math.min(this.#nextMs, fact.untilMs);
      else {
        this.#open.delete(key);
        this.#ended(fact);
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
