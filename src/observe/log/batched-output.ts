import type { LineOutput } from './access-log.ts';

/** How long a line may wait for others. */
const WAIT_MS = 5;

/** Longer text is written at once. */
const MAX_LENGTH = 65_536;

/** Writes all lines of a few milliseconds at once, because a write costs more than formatting many lines. */
export class BatchedOutput implements LineOutput {
  readonly #output: LineOutput;
  #text = '';
  #isScheduled = false;

  constructor(output: LineOutput) {
    this.#output = output;
  }

  write(line: string): void {
    this.#text += line;
    if (this.#text.length >= MAX_LENGTH) this.flushSync();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(this.#onTimeout, WAIT_MS);
  }

  /** Writes pending lines now. pino calls it before it reports a fatal error. */
  flushSync(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    this.#output.write(text);
  }

  readonly #onTimeout = (): void => {
    this.#isScheduled = false;
    this.flushSync();
  };
}
