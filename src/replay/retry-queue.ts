/** Values in the order of their due times: a binary heap. */
export class RetryQueue<T> {
  readonly #heap: { readonly atUs: number; readonly value: T }[] = [];

  add(value: T, atUs: number): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push({ value, atUs });
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#at(parent) <= atUs) break;
      this.#swap(index, parent);
      index = parent;
    }
  }

  /** Removes and returns the earliest value that is due by `nowUs`, with its due time, or undefined. */
  take(nowUs: number) {
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.atUs > nowUs) return undefined;
    const last = heap.pop();
    if (heap.length > 0 && last !== undefined) {
      heap[0] = last;
      this.#sink();
    }
    return first;
  }

  #sink(): void {
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const earlier = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
      if (this.#at(earlier) >= this.#at(index)) return;
      this.#swap(index, earlier);
      index = earlier;
    }
  }

  #at(index: number): number {
    return this.#heap[index]?.atUs ?? Number.POSITIVE_INFINITY;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}
