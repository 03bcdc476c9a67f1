import type { UsageBatch } from '../../observe/usage/batch.ts';

/** Principals that are remembered. The one that sent nothing for longest is forgotten first. */
const MOST_PRINCIPALS = 5_000;

/** The principals whose requests reached this replica lately. Of those that spend from one bucket in one second, one is remembered. */
export class SeenPrincipals {
  readonly #batch: UsageBatch;
  /** The one that was seen last is last. */
  readonly #ids = new Set<string>();

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo(({ payer }) => this.#add(payer.principal?.id));
  }

  has(id: string): boolean {
    this.#batch.flush();
    return this.#ids.has(id);
  }

  ids(): Iterable<string> {
    this.#batch.flush();
    return this.#ids;
  }

  #add(id: string | undefined): void {
    if (id === undefined) return;
    this.#ids.delete(id);
    this.#ids.add(id);
    if (this.#ids.size <= MOST_PRINCIPALS) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      return;
    }
  }
}
