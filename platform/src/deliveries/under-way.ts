import type { ClaimedDelivery } from './queue.ts';
import type { UnderWay } from './shares.ts';

/** The attempts that this process has under way, and the windows of their subscriptions. */
export class AttemptsUnderWay implements UnderWay {
  readonly #attempts = new Set<Promise<void>>();
  readonly #held = new Map<string, number>();
  readonly #windows = new Map<string, number>();
  #ofFailing = 0;

  get total(): number {
    return this.#attempts.size;
  }

  get ofFailing(): number {
    return this.#ofFailing;
  }

  of(id: string): number {
    return this.#held.get(id) ?? 0;
  }

  windowOf(subscriptionId: string): number {
    return this.#windows.get(subscriptionId) ?? 1;
  }

  /** Counts an attempt until it has ended, and calls `onEnd` then. `attempt` resolves with whether it was delivered. */
  add(
    { subscriptionId, owner, isFailing }: ClaimedDelivery,
    attempt: Promise<boolean>,
    onEnd: () => void,
  ): void {
    const holders = [subscriptionId, owner];
    for (const id of holders) this.#held.set(id, this.of(id) + 1);
    if (isFailing) this.#ofFailing++;
    const counted = attempt.then((isDelivered) => {
      this.#attempts.delete(counted);
      for (const id of holders) this.#release(id);
      if (isFailing) this.#ofFailing--;
      const window = this.windowOf(subscriptionId);
      this.#windows.set(subscriptionId, isDelivered ? window + 1 : Math.max(1, Math.floor(window / 2)));
      onEnd();
    });
    this.#attempts.add(counted);
  }

  /** Forgets the windows of subscriptions that neither have an attempt under way nor are among these. */
  keepWindows(waiting: readonly { readonly id: string }[]): void {
    const kept = new Set(waiting.map(({ id }) => id));
    for (const id of this.#windows.keys()) if (!kept.has(id) && this.of(id) === 0) this.#windows.delete(id);
  }

  /** Resolves once all attempts have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#attempts);
  }

  #release(id: string): void {
    const left = this.of(id) - 1;
    if (left > 0) this.#held.set(id, left);
    else this.#held.delete(id);
  }
}
