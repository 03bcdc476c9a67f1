import { hash } from 'node:crypto';
import { readText } from './read-text.ts';

/** One file and what it says; it is parsed again only when its text has changed. */
export class ParsedFile<T> {
  readonly file: string;
  readonly #hint: string;
  readonly #parse: (text: string, file: string) => T;
  #last: { readonly digest: string; readonly value: T } | undefined;

  /** `hint` tells what to do about a missing file. */
  constructor(file: string, parse: (text: string, file: string) => T, hint: string) {
    this.file = file;
    this.#parse = parse;
    this.#hint = hint;
  }

  /** The same object as before where the text is the same. Throws a ConfigError that carries every problem. */
  read(): T {
    const text = readText(this.file, this.#hint);
    const digest = hash('sha256', text);
    if (this.#last?.digest !== digest) this.#last = { digest, value: this.#parse(text, this.file) };
    return this.#last.value;
  }
}
