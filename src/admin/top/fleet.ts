import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Board } from '../../store/redis/board.ts';
import { type Pulse, readPulse } from '../fleet/pulse.ts';
import type { Window } from './history.ts';
import { rank, readSummary, type Summary, type Talkers, type Top } from './talkers.ts';

const PUBLISH_MS = 1_000;

/** How long Redis may take: one that hangs must delay neither an operator nor the next publication. */
const ANSWER_MS = 1_000;

/** What a replica publishes about its requests, and about itself. */
interface Publication {
  readonly summary: Summary;
  /** Undefined for a replica of another version of Weir. */
  readonly pulse: Pulse | undefined;
}

/** Where a replica's own publication comes from. */
export interface PublicationSources {
  readonly talkers: Talkers;
  pulse(): Pulse;
}

/** What all replicas published last. */
export interface FleetReading {
  top(window: Window): Top;
  /** By replica. */
  readonly pulses: ReadonlyMap<string, Pulse>;
}

/** Publishes what this replica has counted every second, and reads what the others have. */
export class Fleet {
  readonly #replica: string;
  readonly #sources: PublicationSources;
  readonly #board: Board | undefined;
  readonly #ended = new AbortController();

  /** @param board undefined where this process is the only replica */
  constructor(replica: string, sources: PublicationSources, board: Board | undefined) {
    this.#replica = replica;
    this.#sources = sources;
    this.#board = board;
    if (board !== undefined) void this.#publish(board);
  }

  /** The rankings over all replicas. While Redis cannot be read, those of this replica. */
  async top(window: Window): Promise<Top> {
    return (await this.read()).top(window);
  }

  /** What all replicas published last. While Redis cannot be read, what this replica would publish. */
  async read(): Promise<FleetReading> {
    const publications = new Map([[this.#replica, await this.#own()], ...(await this.#others())]);
    const summaries = [...publications.values()].map(({ summary }) => summary);
    const pulses = [...publications].flatMap(([replica, { pulse }]) =>
      pulse === undefined ? [] : [[replica, pulse] as const],
    );
    return { top: (window) => rank(summaries, window), pulses: new Map(pulses) };
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#board?.close();
  }

  async #own(): Promise<Publication> {
    const { talkers, pulse } = this.#sources;
    return { summary: await talkers.summary(performance.now()), pulse: pulse() };
  }

  /** Yields to requests between the texts, which are long. */
  async #others(): Promise<readonly (readonly [string, Publication])[]> {
    const texts = await answered(this.#board?.read());
    const others: (readonly [string, Publication])[] = [];
    for (const [replica, text] of texts ?? []) {
      if (replica === this.#replica) continue;
      const publication = readPublication(text);
      if (publication !== undefined) others.push([replica, publication]);
      await setImmediate();
    }
    return others;
  }

  async #publish(board: Board): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const { summary, pulse } = await this.#own();
      // The store's own metrics and log report a Redis that does not answer.
      await answered(board.post(JSON.stringify({ ...summary, pulse })));
      await setTimeout(PUBLISH_MS, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }
}

/** Undefined for a text that is no publication, or one of another version of Weir. */
function readPublication(text: string): Publication | undefined {
  try {
    const published: unknown = JSON.parse(text);
    const summary = readSummary(published);
    return summary === undefined ? undefined : { summary, pulse: readPulse(published) };
  } catch {
    return undefined;
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
