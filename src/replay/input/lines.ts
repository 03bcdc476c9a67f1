const NEWLINE = 10;

/** No log line is longer. A file without line breaks would otherwise fill the memory. */
const LONGEST_LINE_BYTES = 1_048_576;

/** Cuts a stream of bytes into lines. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);

  /** @param onLine gets each line without its line break; a line that is too long arrives in pieces */
  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    const last = chunk.lastIndexOf(NEWLINE);
    if (last === -1) {
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      if (this.#rest.length > LONGEST_LINE_BYTES) this.end();
      return;
    }
    const whole = chunk.subarray(0, last + 1);
    // Decodes many lines at once: decoding each by itself would cost more than parsing it.
    this.#split((this.#rest.length === 0 ? whole : Buffer.concat([this.#rest, whole])).toString('utf8'));
    this.#rest = chunk.subarray(last + 1);
  }

  /** Emits the last line, which may lack a line break. */
  end(): void {
    this.#split(this.#rest.toString('utf8'));
    this.#rest = Buffer.alloc(0);
  }

  #split(text: string): void {
    let start = 0;
    while (start < text.length) {
      const next = text.indexOf('\n', start);
      const end = next === -1 ? text.length : next;
      const isCrLf = end > start && text.charCodeAt(end - 1) === 13;
      this.#onLine(text.slice(start, isCrLf ? end - 1 : end));
      start = end + 1;
    }
  }
}
