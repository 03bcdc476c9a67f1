import type { LineOutput } from '../../gateway/log/access-log.ts';

/** Longer text is written before the turn ends. */
const MAX_LENGTH = 65_536;

/** Writes all lines of one turn of the event loop at once, because a write costs more than formatting many lines. */
export class TurnOutput implements LineOutput {
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
    setImmediate(this.#onTurnEnd);
  }

  /** Writes pending lines now. pino calls it before it reports a fatal error. */
  flushSync(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    this.#output.write(text);
  }

  readonly #onTurnEnd = (): void => {
    this.#isScheduled = false;
    this.flushSync();
  };
}
