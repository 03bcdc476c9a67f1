import { setTimeout } from 'node:timers/promises';
import type { Board } from '../../store/redis/board.ts';
import type { Window } from './history.ts';
import { rank, readSummary, type Summary, type Talkers, type Top } from './talkers.ts';

const PUBLISH_MS = 1_000;

/** How long Redis may take: one that hangs must delay neither an operator nor the next publication. */
const ANSWER_MS = 1_000;

/** Publishes what this replica has counted every second, and reads what the others have. */
export class Fleet {
  readonly #replica: string;
  readonly #talkers: Talkers;
  readonly #board: Board | undefined;
  readonly #ended = new AbortController();

  /** @param board undefined where this process is the only replica */
  constructor(replica: string, talkers: Talkers, board: Board | undefined) {
    this.#replica = replica;
    this.#talkers = talkers;
    this.#board = board;
    if (board !== undefined) void this.#publish(board);
  }

  /** The rankings over all replicas. While Redis cannot be read, those of this replica. */
  async top(window: Window): Promise<Top> {
    const own = await this.#talkers.summary(performance.now());
    return rank([own, ...(await this.#others())], window);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#board?.close();
  }

  async #others(): Promise<readonly Summary[]> {
    const texts = await answered(this.#board?.read());
    return [...(texts ?? [])].flatMap(([replica, text]) => {
      const summary = replica === this.#replica ? undefined : readSummary(text);
      return summary === undefined ? [] : [summary];
    });
  }

  async #publish(board: Board): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const text = JSON.stringify(await this.#talkers.summary(performance.now()));
      // The store's own metrics and log report a Redis that does not answer.
      await answered(board.post(text));
      await setTimeout(PUBLISH_MS, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }
}

/** The result; undefined where Redis refuses or does not answer in time. */
async function answered<T>(result: Promise<T> | undefined): Promise<T | undefined> {
  const ended = new AbortController();
  const late = setTimeout(ANSWER_MS, undefined, { ref: false, signal: ended.signal }).catch(() => undefined);
  try {
    return await Promise.race([result?.catch(() => undefined), late]);
  } finally {
    ended.abort();
  }
}
