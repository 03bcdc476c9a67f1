/**
 * Assigns numbers to JSON values. Two values have the same number if and only if they are equal. Each array or object is read
 * once, even if several enclosing arrays are checked, so checking all arrays of a value takes linear time.
 */
export class Identities {
  readonly #numbers = new Map<string, number>();
  readonly #known = new Map<object, number>();

  /** Whether no two items are equal (JSON Schema 2020-12, validation, section 6.4.3). */
  areUnique(items: readonly unknown[]): boolean {
    return new Set(items.map((item) => this.#of(item))).size === items.length;
  }

  #of(value: unknown): number {
    if (typeof value === 'string') return this.#numberOf(JSON.stringify(value));
    if (typeof value !== 'object' || value === null) return this.#numberOf(String(value));
    let number = this.#known.get(value);
    if (number === undefined) {
      number = this.#numberOf(this.#structure(value));
      this.#known.set(value, number);
    }
    return number;
  }

  #structure(value: object): string {
    if (Array.isArray(value)) return `[${value.map((item) => this.#of(item)).join()}]`;
    const names = Object.keys(value).sort();
    const members = names.map(
      (name) => `${JSON.stringify(name)}:${this.#of(value[name as keyof typeof value])}`,
    );
    return `{${members.join()}}`;
  }

  #numberOf(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(text, number);
    }
    return number;
  }
}
