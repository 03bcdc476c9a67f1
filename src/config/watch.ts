import { realpath, stat } from 'node:fs/promises';
import { ConfigError, type Problem } from './problem.ts';

/** What to watch, how to read it, and whom to tell. */
export interface Watched<T> {
  /** The value in force. */
  readonly current: T;
  /** The files that make up the value; asked anew at every look. */
  files(): readonly string[];
  /** Reads the value: the same object as before where nothing has changed. A ConfigError says why there is none. */
  load(): T | Promise<T>;
  /** A text that differs for any two states of a file; that of the disk by default. */
  readonly stateOf?: (file: string) => Promise<string>;
  /** Puts a changed value in force; it may still refuse it with a ConfigError. */
  onLoad(value: T): void;
  /** The files cannot be used: what was in force stays in force. Told once per change of the files. */
  onProblems(problems: readonly Problem[]): void;
  /** Time between two looks. */
  readonly intervalMs?: number;
}

/** What is read again while the gateway runs. */
export type ReloadedFile = 'limits' | 'operations' | 'identities';

/** Who counts what became of changed files; the metrics implement it. */
export interface ReloadObserver {
  reloaded(file: ReloadedFile): void;
  /** These limits are in force: at the start, and after every change. */
  limitsInForce(version: string): void;
  /** A change was refused, and what was in force stays in force. */
  reloadRefused(file: ReloadedFile): void;
}

export interface Watch {
  /** Looks now, besides the looks by the clock; ends when a change has been taken or refused. */
  look(): Promise<void>;
  /** What was refused is tried again at the next look, because what it did not fit to has changed. */
  retry(): void;
  close(): void;
}

/** A change is seen by one look and taken by the next: within a second. */
const DEFAULT_INTERVAL_MS = 400;

/**
 * Reads files again when they change, and once at the beginning, for what changed since they were read at first.
 *
 * Looks at them by the clock: notifications of the file system miss the way in which a ConfigMap is replaced (a
 * symlink `..data` beside the file is swapped), and many network and overlay file systems send none. A look costs a
 * few `stat` calls. A change is taken only when two looks in a row have seen the same, lest half a file be read.
 */
export function watchFiles<T>(watched: Watched<T>): Watch {
  const watcher = new FileWatcher(watched);
  let looking = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    looking = looking.then(() => watcher.look());
    return looking;
  };
  const schedule = () => {
    timer = setTimeout(() => look().then(schedule), watched.intervalMs ?? DEFAULT_INTERVAL_MS).unref();
  };
  const close = () => {
    watcher.isClosed = true;
    clearTimeout(timer);
  };
  schedule();
  return { look, retry: () => watcher.retry(), close };
}

class FileWatcher<T> {
  isClosed = false;
  readonly #watched: Watched<T>;
  #current: T;
  #isRefused = false;
  #seen = '';
  #taken = '';

  constructor(watched: Watched<T>) {
    this.#watched = watched;
    this.#current = watched.current;
  }

  /** Never rejects: whatever goes wrong is told, and the next look tries again once the files have changed. */
  async look(): Promise<void> {
    try {
      const now = await fingerprint(this.#watched.files(), this.#watched.stateOf ?? stateOf);
      const isSteady = now === this.#seen;
      this.#seen = now;
      if (this.isClosed || !isSteady || now === this.#taken) return;
      this.#taken = now;
      await this.#take();
    } catch (error) {
      if (this.isClosed) return;
      this.#isRefused = true;
      this.#watched.onProblems(problemsOf(error));
    }
  }

  retry(): void {
    if (this.#isRefused) this.#taken = '';
  }

  async #take(): Promise<void> {
    const value = await this.#watched.load();
    if (this.isClosed || (value === this.#current && !this.#isRefused)) return;
    this.#watched.onLoad(value);
    this.#current = value;
    this.#isRefused = false;
  }
}

function problemsOf(error: unknown): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems;
  return [{ source: 'configuration', path: '', message: `could not be read again: ${String(error)}` }];
}

/** Tells any two states of the files apart: where each path leads to, and the size and times of what is there. */
async function fingerprint(
  files: readonly string[],
  state: (file: string) => Promise<string>,
): Promise<string> {
  const states = await Promise.all(files.map(state));
  return states.join('\n');
}

/** A text that differs for any two states of a file on the disk. */
export async function stateOf(file: string): Promise<string> {
  try {
    const [real, { ino, size, mtimeNs, ctimeNs }] = await Promise.all([
      realpath(file),
      stat(file, { bigint: true }),
    ]);
    return [real, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return `${file} ${(error as NodeJS.ErrnoException).code}`;
  }
}
