import { hash } from 'node:crypto';
import { FileSource } from './file-source.ts';

/** One file and what it says; it is parsed again only when its text has changed. */
export class ParsedFile<T> {
  readonly file: string;
  readonly #hint: string;
  readonly #source: FileSource;
  readonly #parse: (text: string, file: string) => T;
  #last: { readonly digest: string; readonly value: T } | undefined;

  /** `hint` says what to do about a missing file. */
  constructor(
    file: string,
    parse: (text: string, file: string) => T,
    hint: string,
    source = new FileSource(),
  ) {
    this.file = file;
    this.#parse = parse;
    this.#hint = hint;
    this.#source = source;
  }

  /** The same object as before where the text is the same. Throws a ConfigError that carries every problem. */
  read(): T {
    const text = this.#source.read(this.file, this.#hint);
    const digest = hash('sha256', text);
    if (this.#last?.digest !== digest) this.#last = { digest, value: this.#parse(text, this.file) };
    return this.#last.value;
  }
}
