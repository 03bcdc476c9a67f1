/** Thrown if validating a value takes more work than its size justifies. */
export class TooComplex extends Error {}

/**
 * Limit on references followed: per byte of the value, plus a minimum. Usually a value needs a few. With a schema that refers
 * to itself in several branches, the number can double with each level of nesting.
 */
const STEPS_PER_BYTE = 8;
const MIN_STEPS = 10_000;

/**
 * Limit on errors found in the branches of `anyOf` and `oneOf`, per byte of the value, plus a minimum. A value that is valid in the
 * last of several branches has an error in each of the others.
 */
const ERRORS_PER_BYTE = 8;
const MIN_ERRORS = 10_000;

/** Limit on characters scanned times the size of the compiled pattern: per byte of the value, plus a minimum. */
const SCANNED_PER_BYTE = 100;
const MIN_SCANNED = 2e7;

/** Limit on scan time, for the rare pattern that takes microseconds per character regardless of its size. */
const MAX_SCAN_MS = 1_000;

/** Limits the work for one value. Validation is synchronous, so all schemas of a description share one meter. */
export class Meter {
  readonly #nowMs: () => number;
  #steps = 0;
  #errors = 0;
  #scanned = 0;
  #scanMs = 0;
  /** Made for the few values whose items have to be compared: two maps are 400 bytes. */
  #valueNumbers: ValueNumbers | undefined;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Resets the limits for a value of the given size. */
  begin(bytes: number): void {
    this.#steps = MIN_STEPS + STEPS_PER_BYTE * bytes;
    this.#errors = MIN_ERRORS + ERRORS_PER_BYTE * bytes;
    this.#scanned = MIN_SCANNED + SCANNED_PER_BYTE * bytes;
    this.#scanMs = MAX_SCAN_MS;
    this.#valueNumbers = undefined;
  }

  /** The numbers of the arrays and objects in the current value. */
  get valueNumbers(): ValueNumbers {
    this.#valueNumbers ??= new ValueNumbers();
    return this.#valueNumbers;
  }

  /** Counts one reference. Throws TooComplex above the limit. */
  step(): void {
    if (--this.#steps < 0) throw new TooComplex();
  }

  /** Counts one error. Throws TooComplex above the limit. */
  fail(): void {
    if (--this.#errors < 0) throw new TooComplex();
  }

  /** Returns the result of `scan`. Throws TooComplex above the limit. */
  scan(patternSize: number, characters: number, scan: () => boolean): boolean {
    this.#scanned -= patternSize * characters;
    if (this.#scanned < 0 || this.#scanMs < 0) throw new TooComplex();
    const startedMs = this.#nowMs();
    const isMatch = scan();
    this.#scanMs -= this.#nowMs() - startedMs;
    return isMatch;
  }
}

/**
 * Assigns numbers to JSON values. Two values have the same number if and only if they are equal. Each array or object is read
 * once, even if several enclosing arrays are checked, so checking all arrays of a value takes linear time.
 */
class ValueNumbers {
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
