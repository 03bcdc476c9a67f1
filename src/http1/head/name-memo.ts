/** More names than the clients of one API send; the longest standard one has 35 characters. */
const MAX_MEMO_NAMES = 1_000;
const MAX_MEMO_LENGTH = 64;

/** A cache by name. It is cleared when full, so that made-up names cannot fill it for good. */
export class NameMemo<T> {
  readonly #compute: (name: string) => T;
  readonly #known = new Map<string, T>();

  constructor(compute: (name: string) => T) {
    this.#compute = compute;
  }

  get(name: string): T {
    let result = this.#known.get(name);
    if (result === undefined) {
      result = this.#compute(name);
      if (name.length > MAX_MEMO_LENGTH) return result;
      if (this.#known.size >= MAX_MEMO_NAMES) this.#known.clear();
      this.#known.set(name, result);
    }
    return result;
  }
}
