/** What {@link weirFetch} may be given. */
interface Options {
  readonly fetch?: typeof globalThis.fetch;
  readonly retries?: number;
  readonly longestWaitMs?: number;
  readonly now?: () => number;
  readonly sleep?: (ms: number) => Promise<unknown>;
  readonly random?: () => number;
}

export function weirFetch(options?: Options): typeof globalThis.fetch;
