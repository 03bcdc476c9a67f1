import { hash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type ConfigError, fileError } from '../problem.ts';
import { stateOf } from '../watch.ts';
import { readText } from './read-text.ts';
import { isBlank } from './yaml-text.ts';

/** The texts of a folder's files, by file name. */
export type FolderTexts = ReadonlyMap<string, string>;

/**
 * Reads configuration files from disk. The content of a folder can be replaced by `deliver`; it is then read from memory
 * until `withdraw` is called. Paths are absolute.
 */
export class FileSource {
  readonly #folders = new Map<string, { readonly version: number; readonly texts: FolderTexts }>();
  #versions = 0;

  /** Replaces the content of the folder with `texts`, regardless of what is on disk. */
  deliver(folder: string, texts: FolderTexts): void {
    const known = this.#folders.get(folder);
    if (known !== undefined && isSameFolder(known.texts, texts)) return;
    this.#folders.set(folder, { version: ++this.#versions, texts });
  }

  /** Reads the folder from disk again. */
  withdraw(folder: string): void {
    this.#folders.delete(folder);
  }

  /** The text of a file. Throws a ConfigError with one problem if it cannot be read. */
  read(path: string, hint: string): string {
    const folder = this.#folders.get(dirname(path));
    if (folder === undefined) return readText(path, hint);
    const text = folder.texts.get(basename(path));
    if (text !== undefined) return text;
    throw fileError(path, 'does not exist', hint);
  }

  /** The names of a folder's entries; undefined if the path is not a folder. */
  list(path: string): readonly string[] | undefined {
    const folder = this.#folders.get(path);
    if (folder !== undefined) return [...folder.texts.keys()];
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(path) : undefined;
  }

  /** A string that changes whenever the file changes. */
  async stateOf(path: string): Promise<string> {
    const folder = this.#folders.get(dirname(path));
    return folder === undefined ? stateOf(path) : `${path} delivered ${folder.version}`;
  }
}

export function isSameFolder(a: FolderTexts, b: FolderTexts): boolean {
  return a.size === b.size && [...a].every(([name, text]) => b.get(name) === text);
}

/** For a file that had content when it was last read: an editor may truncate a file before it writes. */
export function emptiedError(file: string): ConfigError {
  return fileError(file, 'is empty', 'the last content stays in force; write {} to remove all of it');
}

/** A file and its parsed content. It is parsed again only if its text has changed. */
export class ParsedFile<T> {
  readonly file: string;
  readonly #hint: string;
  readonly #source: FileSource;
  readonly #parse: (text: string, file: string) => T | Promise<T>;
  #last: { readonly digest: string; readonly value: T; readonly isBlank: boolean } | undefined;

  /** @param hint shown if the file cannot be read */
  constructor(
    file: string,
    parse: (text: string, file: string) => T | Promise<T>,
    hint: string,
    source = new FileSource(),
  ) {
    this.file = file;
    this.#parse = parse;
    this.#hint = hint;
    this.#source = source;
  }

  /** Returns the same object as before if the text has not changed. Rejects with a ConfigError that has every problem. */
  async load(): Promise<T> {
    const text = this.#source.read(this.file, this.#hint);
    const digest = hash('sha256', text);
    if (this.#last?.digest === digest) return this.#last.value;
    const isEmpty = isBlank(text);
    if (this.#last?.isBlank === false && isEmpty) throw emptiedError(this.file);
    const value = await this.#parse(text, this.file);
    this.#last = { digest, value, isBlank: isEmpty };
    return value;
  }
}
