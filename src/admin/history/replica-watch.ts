/** Notices replicas that are lost: those that neither publish nor have left. */
import { setTimeout } from 'node:timers/promises';
import { Type } from 'typebox';
import { pace } from '../../domain/pace.ts';
import { matching, parsed, plainText, timeMs } from '../../facts/message-bounds.ts';
import type { Board } from '../../store/shared-store.ts';
import { answered } from '../fleet/boards.ts';
import type { RecordedChange } from './change.ts';
import type { ChangeHistory } from './change-history.ts';

/** What a replica publishes to those that watch. */
const asSign = matching(Type.Object({ name: plainText(255), atMs: timeMs }));

interface Watched {
  readonly name: string;
  /** The time of its last sign, by the clock of Redis; undefined before the first. */
  readonly signMs: number | undefined;
  /** When its last sign was first read, by this process's clock. */
  readonly readMs: number;
  readonly isLost: boolean;
}

export class ReplicaWatch {
  readonly #board: Board;
  readonly #sources;
  readonly #ended = new AbortController();
  #watched: Map<string, Watched> | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(
    board: Board,
    sources: {
      /** Of this process. */
      readonly instance: string;
      readonly name: string;
      readonly history: ChangeHistory;
      /** Unix time by the clock of Redis. */
      nowMs(): number;
    },
  ) {
    this.#board = board;
    this.#sources = sources;
  }

  /** Publishes and looks regularly until `close`. */
  async run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.#look();
      await setTimeout(pace.watchMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#board.close();
  }

  async #look(): Promise<void> {
    const { name, nowMs } = this.#sources;
    await answered(this.#board.post(JSON.stringify({ name, atMs: nowMs() })));
    const reading = await answered(this.#board.read());
    if (reading === undefined || this.#ended.signal.aborted) return;
    this.#watched ??= await this.#running();
    if (this.#watched === undefined) return;
    const lookMs = performance.now();
    // After an outage, or a pause of this process, the others have as long as ever to publish again.
    if (lookMs - this.#lookedMs > pace.missedMs / 2)
      for (const [instance, one] of this.#watched) this.#watched.set(instance, { ...one, readMs: lookMs });
    this.#lookedMs = lookMs;
    for (const [instance, text] of reading.texts) this.#see(instance, text, this.#watched);
    const missing = [...this.#watched].filter(
      ([, { isLost, readMs }]) => !isLost && lookMs - readMs > pace.missedMs,
    );
    if (missing.length > 0) await this.#miss(missing, this.#watched);
  }

  #see(instance: string, text: string, watched: Map<string, Watched>): void {
    const sign = asSign(parsed(text));
    if (sign === undefined || instance === this.#sources.instance) return;
    const { name, atMs: signMs } = sign;
    const known = watched.get(instance);
    // A replica that is lost may have left its last sign behind.
    if (known?.signMs === signMs) return;
    const isBack = known?.isLost === true && (known.signMs !== undefined || this.#isFresh(signMs));
    if (isBack)
      this.#add({ kind: 'replica.back', subject: name, text: 'publishes again', atMs: signMs }, instance);
    const isLost = known?.isLost === true && !isBack;
    watched.set(instance, { name, signMs, readMs: performance.now(), isLost });
  }

  #isFresh(signMs: number): boolean {
    return this.#sources.nowMs() - signMs < pace.missedMs;
  }

  /** Those that left are forgotten, and the others are lost. */
  async #miss(
    missing: readonly (readonly [string, Watched])[],
    watched: Map<string, Watched>,
  ): Promise<void> {
    const states = await this.#states();
    if (states === undefined) return;
    for (const [instance, one] of missing) {
      const { name, signMs = this.#sources.nowMs() } = one;
      const state = states.get(instance)?.kind;
      if (state === 'replica.left') watched.delete(instance);
      else watched.set(instance, { ...one, isLost: true });
      if (state === 'replica.left' || state === 'replica.lost') continue;
      this.#add(
        { kind: 'replica.lost', subject: name, text: 'stopped publishing and did not leave', atMs: signMs },
        instance,
      );
    }
  }

  /** Those that joined and did not leave: also before this replica started. */
  async #running(): Promise<Map<string, Watched> | undefined> {
    const states = await this.#states();
    if (states === undefined) return undefined;
    const readMs = performance.now();
    const running = [...states].flatMap(([instance, { kind, subject }]) => {
      if (kind === 'replica.left' || instance === this.#sources.instance) return [];
      const isLost = kind === 'replica.lost';
      return [[instance, { name: subject ?? instance, signMs: undefined, readMs, isLost }] as const];
    });
    return new Map(running);
  }

  /** The last that is known of each; undefined while Redis cannot be read. */
  async #states(): Promise<ReadonlyMap<string, RecordedChange> | undefined> {
    const { changes, running, isWhole } = await this.#sources.history.read();
    if (!isWhole) return undefined;
    return new Map(
      [...running, ...changes.toReversed()].flatMap((one) =>
        one.kind.startsWith('replica.') && one.instance !== undefined ? [[one.instance, one] as const] : [],
      ),
    );
  }

  #add(change: Pick<RecordedChange, 'kind' | 'subject' | 'text' | 'atMs'>, instance: string): void {
    const { history, instance: noticedBy } = this.#sources;
    history.add({ ...change, by: null, why: null, replica: change.subject, instance, noticedBy });
  }
}
