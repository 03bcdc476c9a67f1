/** What {@link weirFetch} may be given. */
interface Options {
  readonly fetch?: typeof globalThis.fetch;
  readonly retries?: number;
  readonly longestWaitMs?: number;
  readonly now?: () => number;
  /** Rejects if the signal is aborted. */
  readonly sleep?: (ms: number, signal?: AbortSignal | null) => Promise<unknown>;
  readonly random?: () => number;
}

export function weirFetch(options?: Options): typeof globalThis.fetch;
