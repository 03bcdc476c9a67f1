import { ownCopy } from '../../../domain/field-name.ts';

/** More addresses than most replicas see at a time. */
const MAX_ADDRESSES = 1_000;
/** No address is longer; a short list of them is remembered as well. */
const MAX_LENGTH = 64;

/**
 * Remembers what follows from an address. One that is among the last 500 different ones is never forgotten, so strangers with new
 * addresses do not empty it.
 */
export class AddressMemo<T> {
  readonly #compute: (address: string) => T;
  #recent = new Map<string, T>();
  /** The 500 before those; an address that is used again moves on. */
  #older: ReadonlyMap<string, T> = new Map();

  constructor(compute: (address: string) => T) {
    this.#compute = compute;
  }

  get(address: string): T {
    const known = this.#recent.get(address);
    if (known !== undefined) return known;
    const result = this.#older.get(address) ?? this.#compute(address);
    if (address.length <= MAX_LENGTH) this.#remember(address, result);
    return result;
  }

  #remember(address: string, result: T): void {
    if (this.#recent.size >= MAX_ADDRESSES / 2) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(ownCopy(address), result);
  }
}
