import { Identities } from './identities.ts';

/** Thrown when judging a value takes more work than its size justifies. */
export class TooComplex extends Error {}

/**
 * References that may be followed for each byte of a value, and for any value. One value takes a reference or a few; schemas
 * that refer to themselves in several branches can take a number that doubles with each level of the value.
 */
const STEPS_PER_BYTE = 8;
const LEAST_STEPS = 10_000;

/** Characters times the size of the compiled pattern, for each byte of a value and for any value. */
const SCANNED_PER_BYTE = 100;
const LEAST_SCANNED = 2e7;

/** For the rare pattern that takes microseconds for each character, which its size does not show. */
const MOST_SCAN_MS = 1_000;

/** Bounds the work for one value. Judging is synchronous, so one meter serves all schemas of a description. */
export class Meter {
  readonly #nowMs: () => number;
  #steps = 0;
  #scanned = 0;
  #scanMs = 0;
  #identities = new Identities();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Begins with a value of so many bytes. */
  begin(bytes: number): void {
    this.#steps = LEAST_STEPS + STEPS_PER_BYTE * bytes;
    this.#scanned = LEAST_SCANNED + SCANNED_PER_BYTE * bytes;
    this.#scanMs = MOST_SCAN_MS;
    this.#identities = new Identities();
  }

  /** Of the arrays and objects of this value. */
  get identities(): Identities {
    return this.#identities;
  }

  /** Throws TooComplex. */
  step(): void {
    if (--this.#steps < 0) throw new TooComplex();
  }

  /** What `scan` returns. Throws TooComplex. */
  scan(patternSize: number, characters: number, scan: () => boolean): boolean {
    this.#scanned -= patternSize * characters;
    if (this.#scanned < 0 || this.#scanMs < 0) throw new TooComplex();
    const startedMs = this.#nowMs();
    const isMatch = scan();
    this.#scanMs -= this.#nowMs() - startedMs;
    return isMatch;
  }
}
