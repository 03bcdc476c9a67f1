import { stat } from 'node:fs/promises';
import { pace } from '../domain/pace.ts';
import { ConfigError, type Problem } from './problem.ts';

/** What to watch, how to read it, and callbacks for changes. */
export interface Watched<T> {
  /** The value in force. */
  readonly current: T;
  /** The files that make up the value. Called at every poll. */
  files(): readonly string[];
  /** Reads the value. Returns the same object as before if nothing has changed. Throws a ConfigError if it is not valid. */
  load(): T | Promise<T>;
  /** A string that changes whenever the file changes. Default: the file's state on disk. */
  readonly stateOf?: (file: string) => Promise<string>;
  /** Applies a changed value. Throws a ConfigError to refuse it. */
  onLoad(value: T): void;
  /** Called once per change if the files are not valid. The previous value stays in force. */
  onProblems(problems: readonly Problem[]): void;
  /** Time between two polls. By default, a change is loaded within a second: one poll notices it, and the next one loads it. */
  readonly intervalMs?: number;
}

/** Files that are reloaded while the gateway runs. */
export type ReloadedFile = 'limits' | 'operations' | 'identities' | 'certificates' | 'descriptors';

/** Called when files are reloaded. The metrics implement it. Files of one kind that are followed apart have a `part` each. */
export interface ReloadObserver {
  reloaded(file: ReloadedFile, part?: string): void;
  /** Called with the `version` of the limits files in force, at startup and after every change. */
  limitsInForce(sha: string): void;
  /** A change was refused, and the previous version stays in force. */
  reloadRefused(file: ReloadedFile, part?: string): void;
}

/**
 * Reloads files when they change. Also loads them once at the start, in case they changed after they were first read.
 *
 * Polls, because file system notifications miss the replacement of a ConfigMap (Kubernetes swaps the symlink `..data` next to
 * the file), and many network and overlay file systems send none. A poll costs a few `stat` calls. A change is loaded only
 * after two consecutive polls have seen the same state, so that a half-written file is not read.
 */
export function watchFiles<T>(watched: Watched<T>): Watch {
  return new FileWatch(watched);
}

export type Watch = Pick<FileWatch<unknown>, 'poll' | 'retry' | 'close'>;

class FileWatch<T> {
  readonly #watched: Watched<T>;
  #current: T;
  #isRefused = false;
  #isClosed = false;
  #seen = '';
  #loaded = '';
  #polling = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(watched: Watched<T>) {
    this.#watched = watched;
    this.#current = watched.current;
    this.#schedule();
  }

  /** Polls now. Resolves when a change has been applied or refused. */
  poll(): Promise<void> {
    this.#polling = this.#polling.then(() => this.#poll());
    return this.#polling;
  }

  /** Loads refused files again at the next poll, because a file that they conflicted with has changed. */
  retry(): void {
    if (this.#isRefused) this.#loaded = '';
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const { intervalMs = pace.filesMs } = this.#watched;
    this.#timer = setTimeout(() => this.poll().then(() => this.#schedule()), intervalMs).unref();
  }

  /** Never rejects. Failures are reported through `onProblems`; the files are loaded again after their next change. */
  async #poll(): Promise<void> {
    try {
      const now = await fingerprint(this.#watched);
      const isSteady = now === this.#seen;
      this.#seen = now;
      if (this.#isClosed || !isSteady || now === this.#loaded) return;
      this.#loaded = now;
      await this.#load();
    } catch (error) {
      if (this.#isClosed) return;
      this.#isRefused = true;
      this.#watched.onProblems(problemsOf(error));
    }
  }

  async #load(): Promise<void> {
    const value = await this.#watched.load();
    if (this.#isClosed || (value === this.#current && !this.#isRefused)) return;
    this.#watched.onLoad(value);
    this.#current = value;
    this.#isRefused = false;
  }
}

function problemsOf(error: unknown): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems;
  return [{ source: 'configuration', path: '', message: `could not be reloaded: ${String(error)}` }];
}

/**
 * Changes whenever one of the files changes, and when it becomes unknown or known which files there are: a folder that cannot be read is
 * reported once, and read again as soon as it can be.
 */
async function fingerprint(watched: Pick<Watched<unknown>, 'files' | 'stateOf'>): Promise<string> {
  let files: readonly string[];
  try {
    files = watched.files();
  } catch (error) {
    return `unknown: ${String(error)}`;
  }
  const states = await Promise.all(files.map(watched.stateOf ?? stateOf));
  return states.join('\n');
}

/** A string that changes whenever a file on disk changes, or another takes its place behind a link: its inode, size and times. */
export async function stateOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return `${file} ${(error as NodeJS.ErrnoException).code}`;
  }
}
