import { setImmediate, setTimeout } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { pace } from '../../domain/pace.ts';
import type { BlockScope, Blocks } from '../../facts/blocks.ts';
import type { Ignored } from '../../facts/ignored.ts';
import type { Rankings, Talker } from '../../observe/usage/extract.ts';
import {
  type RankedScope,
  rank,
  type Summary,
  type Talkers,
  type Top,
  type WindowSummary,
  windowOf,
} from '../../observe/usage/talkers.ts';
import { WINDOWS, type Window } from '../../observe/usage/windows.ts';
import type { Board } from '../../store/shared-store.ts';
import { unknownSince } from '../freshness.ts';
import { answered, readOthers } from './boards.ts';
import { type Publication, readPublication, textOf } from './publication.ts';
import type { Pulse } from './pulse.ts';
import type { RefusedRequest } from './refusals.ts';

/** One place of a ranking. */
export interface FleetTalker extends Talker {
  /** Missing unless it is blocked. */
  readonly blockedUntil?: string;
}

type FleetRankings = Readonly<Record<keyof Rankings, readonly FleetTalker[]>>;

/** The answer to `GET /usage/top`. */
export interface FleetTop extends Omit<Top, RankedScope>, Readonly<Record<RankedScope, FleetRankings>> {
  readonly asOf: string;
  /** Since when only this replica is ranked, because Redis cannot be read; null while all are. */
  readonly othersUnknownSince: string | null;
}

/** What all replicas published last. */
export interface FleetReading {
  /** Unix time by the clock of Redis. */
  readonly nowMs: number;
  /** Ranks each window once, for all who ask. */
  top(window: Window): Promise<FleetTop>;
  /** By replica. While Redis cannot be read, the other replicas have the last pulse that was read. */
  readonly pulses: ReadonlyMap<string, Pulse>;
  /** Since when Redis cannot be read, and so whether there are other replicas is unknown; null while it can. */
  readonly othersUnknownSinceMs: number | null;
}

/** Publishes what this replica has counted every second, and reads what the others have. */
export class Fleet {
  readonly #replica: string;
  readonly #sources;
  readonly #board: Board | undefined;
  readonly #ended = new AbortController();
  /** When Redis last took or gave a publication. */
  #sharedAtMs: number;
  /** What the other replicas had published when Redis was last read. */
  #others: { readonly readAtMs: number; readonly publications: ReadonlyMap<string, Publication> };

  /** @param board undefined where this process is the only replica */
  constructor(
    replica: string,
    sources: {
      readonly talkers: Talkers;
      readonly blocks: Pick<Blocks, 'of'>;
      pulse(): Pulse;
      /** Unix time by the clock of Redis. */
      nowMs(): number;
      /** Counts what other replicas did not write. */
      readonly ignored: Pick<Ignored, 'add'>;
    },
    board: Board | undefined,
  ) {
    this.#replica = replica;
    this.#sources = sources;
    this.#board = board;
    this.#sharedAtMs = sources.nowMs();
    this.#others = { readAtMs: this.#sharedAtMs, publications: new Map() };
    if (board !== undefined) void this.#publish(board);
  }

  /** The rankings over all replicas. While Redis cannot be read, only this replica is ranked. */
  async top(window: Window): Promise<FleetTop> {
    return (await this.read()).top(window);
  }

  /** The latest refusals of the other replicas. */
  async refusals(): Promise<readonly RefusedRequest[]> {
    const others = await this.#readOthers();
    return [...others.values()].flatMap(({ pulse }) => pulse?.refusals ?? []);
  }

  /** What all replicas published last. While Redis cannot be read, what this replica would publish. */
  async read(): Promise<FleetReading> {
    const own = this.#own();
    const others = await this.#readOthers();
    const nowMs = this.#sources.nowMs();
    const publications = [[this.#replica, own] as const, ...others];
    const ranked = publications
      .map(([, publication]) => publication)
      .filter(({ takenAtMs }) => unknownSince(takenAtMs, nowMs) === null);
    const pulses = publications.flatMap(([replica, { pulse }]) =>
      pulse === undefined ? [] : [[replica, pulse] as const],
    );
    const othersUnknownSinceMs = this.#board === undefined ? null : unknownSince(this.#sharedAtMs, nowMs);
    const tops = new Map<Window, Promise<FleetTop>>();
    return {
      nowMs,
      top: (window) => {
        const top = tops.get(window) ?? this.#rank(ranked, window, { nowMs, othersUnknownSinceMs });
        tops.set(window, top);
        return top;
      },
      pulses: new Map(pulses),
      othersUnknownSinceMs,
    };
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#board?.close();
  }

  #own(): Publication {
    const { talkers, pulse } = this.#sources;
    const taken = pulse();
    let summary: Promise<Summary> | undefined;
    return {
      pulse: taken,
      takenAtMs: taken.takenAtMs,
      async summaryOf(window) {
        summary ??= talkers.summary(performance.now());
        return windowOf(await summary, window);
      },
    };
  }

  /** Yields to requests between the publications. */
  async #rank(
    publications: readonly Publication[],
    window: Window,
    { nowMs, othersUnknownSinceMs }: Pick<FleetReading, 'nowMs' | 'othersUnknownSinceMs'>,
  ): Promise<FleetTop> {
    const summaries: WindowSummary[] = [];
    for (const publication of publications) {
      const summary = await publication.summaryOf(window);
      if (summary !== undefined) summaries.push(summary);
      await setImmediate();
    }
    return {
      ...this.#withBlocks(rank(summaries, window)),
      asOf: isoOf(nowMs),
      othersUnknownSince: othersUnknownSinceMs === null ? null : isoOf(othersUnknownSinceMs),
    };
  }

  #withBlocks({ accounts, organizations, ...top }: Top) {
    const shown = (scope: BlockScope, { byPoints, byRequests, byRefused }: Rankings): FleetRankings => {
      const withBlock = (talker: Talker) => {
        const untilMs = this.#sources.blocks.of(scope, talker.id)?.untilMs;
        return untilMs === undefined ? talker : { ...talker, blockedUntil: isoOf(untilMs) };
      };
      return {
        byPoints: byPoints.map(withBlock),
        byRequests: byRequests.map(withBlock),
        byRefused: byRefused.map(withBlock),
      };
    };
    return {
      ...top,
      accounts: shown('account', accounts),
      organizations: shown('organization', organizations),
    };
  }

  /** What the others published. While Redis does not answer: the last reading, if Redis answered then. */
  async #readOthers(): Promise<ReadonlyMap<string, Publication>> {
    const { ignored, nowMs } = this.#sources;
    const read = (text: string) => readPublication(text, nowMs(), ignored);
    const publications = await readOthers(this.#board, this.#replica, ignored, read);
    if (publications !== undefined) {
      this.#sharedAtMs = nowMs();
      this.#others = { readAtMs: this.#sharedAtMs, publications };
    }
    const { readAtMs, publications: last } = this.#others;
    return unknownSince(readAtMs, this.#sharedAtMs) === null ? last : new Map();
  }

  async #post(board: Board): Promise<void> {
    const { talkers, pulse } = this.#sources;
    const summary = await talkers.summary(performance.now());
    // The store's own metrics and log report a Redis that does not answer.
    const isPosted = await answered(board.post(textOf(summary, pulse())).then(() => true));
    if (isPosted) this.#sharedAtMs = this.#sources.nowMs();
  }

  async #publish(board: Board): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      // Nothing here should fail. If something does, it does not stop the requests, and the others see that this replica is silent.
      await this.#post(board).catch(() => undefined);
      await setTimeout(pace.publishMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** Adds `/usage/top?window=10s`. */
export function addTopRoute(app: FastifyInstance, fleet: Fleet): void {
  app.get<{ Querystring: { window?: string } }>('/usage/top', async (request, reply) => {
    const { window: asked = '10s' } = request.query;
    const window = WINDOWS.find((one) => one === asked);
    if (window === undefined) return reply.code(400).send({ error: `window takes ${WINDOWS.join(', ')}.` });
    return fleet.top(window);
  });
}
