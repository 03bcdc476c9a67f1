import { hourOf, type RefusedId } from './id-index.ts';

/** Refusals that share a key. */
const PER_KEY = 512;

/** Lines by the key that they are written to. */
export class Lines {
  readonly byKey = new Map<string, string[]>();
  #page = -1;
  #hour = -1;
  #of: string[] = [];

  add(one: RefusedId, line: string): void {
    if (line === '') return;
    const page = one.processTag * 2 ** 26 + Math.floor(one.number / PER_KEY);
    const hour = hourOf(one.atMs);
    if (page !== this.#page || hour !== this.#hour) {
      const key = keyOf(one, hour);
      this.#page = page;
      this.#hour = hour;
      this.#of = this.byKey.get(key) ?? [];
      this.byKey.set(key, this.#of);
    }
    this.#of.push(line);
  }
}

export function keyOf({ processTag, number }: RefusedId, hour: number): string {
  return `${hour}:${processTag.toString(36)}-${Math.floor(number / PER_KEY).toString(36)}`;
}
