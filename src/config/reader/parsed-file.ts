import { hash } from 'node:crypto';
import { FileSource } from './file-source.ts';

/** A file and its parsed content. It is parsed again only if its text has changed. */
export class ParsedFile<T> {
  readonly file: string;
  readonly #hint: string;
  readonly #source: FileSource;
  readonly #parse: (text: string, file: string) => T;
  #last: { readonly digest: string; readonly value: T } | undefined;

  /** @param hint shown if the file cannot be read */
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

  /** Returns the same object as before if the text has not changed. Throws a ConfigError with every problem. */
  read(): T {
    const text = this.#source.read(this.file, this.#hint);
    const digest = hash('sha256', text);
    if (this.#last?.digest !== digest) this.#last = { digest, value: this.#parse(text, this.file) };
    return this.#last.value;
  }
}
