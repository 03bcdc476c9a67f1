import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contestant, Running, Scene } from '../contestants/contestant.ts';
import { type Service, startRedis, startUpstream, type Upstream } from '../load/upstream.ts';
import { type WrkOptions, type WrkResult, wrk } from '../load/wrk.ts';
import { type Cores, chooseCores } from './machine.ts';
import { inTurn } from './turns.ts';

/** How a study is run. */
export interface BenchOptions {
  readonly rounds?: number;
  readonly seconds?: number;
  /** Short and few rounds; nothing is recorded. */
  readonly isQuick?: boolean;
  readonly isRecorded?: boolean;
  /** Choose parts of the study. */
  readonly words?: readonly string[];
  /** Leaves the processes on all cores. */
  readonly sharesCores?: boolean;
}

/** A limit that no load here reaches. */
export const FAR_ABOVE = 10_000_000;
export const ACCOUNTS = 1_000;
/** Connections of the closed-loop load. */
export const CONNECTIONS = 64;
/** Few enough that a limit of one request a second refuses nearly every request. */
export const REFUSED_ACCOUNTS = 10;

/** What a study measures with. Everything that is started here ends with `end`. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  readonly cores: Cores | undefined;
  readonly rounds: number;
  /** Of one measurement. */
  readonly seconds: number;
  readonly isQuick: boolean;
  /** Whether the figures go to bench/RESULTS.md and bench/results. */
  readonly isRecorded: boolean;
  readonly words: readonly string[];
  readonly #endings: (() => unknown)[] = [];
  #upstream: Promise<Upstream> | undefined;
  #redis: Promise<Service> | undefined;

  constructor(options: BenchOptions = {}) {
    const { rounds = 1, seconds = 1, isQuick = false, isRecorded = false, words = [] } = options;
    this.cores = options.sharesCores ? undefined : chooseCores();
    this.rounds = rounds;
    this.seconds = seconds;
    this.isQuick = isQuick;
    this.isRecorded = isRecorded;
    this.words = words;
  }

  say(line: string): void {
    process.stdout.write(`${line}\n`);
  }

  /** The first figure for a run that is recorded, the second for a quick one. */
  either(full: number, quick: number): number {
    return this.isQuick ? quick : full;
  }

  /** Whether the words choose it: it contains one of them, or there are none. */
  includes(name: string): boolean {
    const text = name.toLowerCase();
    return this.words.length === 0 || this.words.some((word) => text.includes(word.toLowerCase()));
  }

  /** nginx with fixed answers, started once. */
  upstream(): Promise<Upstream> {
    this.#upstream ??= startUpstream(this.folder, this.cores?.load).then((one) => this.endWith(one));
    return this.#upstream;
  }

  /** A Redis that all contestants share, started once. */
  redis(): Promise<Service> {
    this.#redis ??= this.startRedis();
    return this.#redis;
  }

  async startRedis(port?: number): Promise<Service> {
    return this.endWith(await startRedis(this.cores?.load, port));
  }

  /** Where a contestant stands: without other terms, before the shared upstream and Redis and with limits out of reach. */
  async scene(name: string, terms: Partial<Scene> = {}): Promise<Scene> {
    const folder = join(this.folder, name.replaceAll(/\W+/g, '-'));
    mkdirSync(folder, { recursive: true });
    const upstreamPort = terms.upstreamPort ?? (await this.upstream()).port;
    const redisPort = terms.redisPort ?? (await this.redis()).port;
    const defaults = { folder, cores: this.cores, limit: FAR_ABOVE, accounts: ACCOUNTS };
    return { ...defaults, ...terms, upstreamPort, redisPort };
  }

  /** Starts a contestant in a folder of this name. */
  async start(contestant: Contestant, name: string, terms?: Partial<Scene>): Promise<Running> {
    return this.endWith(await contestant.start(await this.scene(name, terms)));
  }

  /** As many requests as a gateway takes from connections that never pause: GETs of 1,000 Accounts for one second by default. */
  load({ port }: { readonly port: number }, options: Partial<WrkOptions> = {}): Promise<WrkResult> {
    const defaults = { seconds: 1, connections: CONNECTIONS, accounts: ACCOUNTS, cores: this.cores?.load };
    return wrk({ ...defaults, port, ...options });
  }

  /** Like `load`, but fails unless every request was forwarded, or nearly every one refused. */
  async strictLoad(
    gateway: { readonly port: number },
    { isRefused = false, ...options }: Partial<WrkOptions> & { readonly isRefused?: boolean },
  ): Promise<WrkResult> {
    const result = await this.load(gateway, options);
    const { requests, refused, failed } = result;
    const isAsMeant = requests > 0 && (isRefused ? refused > 0.9 * requests : refused === 0);
    if (failed > 0 || !isAsMeant)
      throw new Error(`Of ${requests} requests, ${refused} were refused and ${failed} failed`);
    return result;
  }

  /** Measures the sides in turn, in as many rounds as the study has, and prints each figure. */
  inTurn<Side extends { readonly name: string }, Figure>(
    sides: readonly Side[],
    measure: (side: Side) => Promise<Figure>,
  ): Promise<Record<string, Figure[]>> {
    return inTurn(sides, this.rounds, measure, (line) => this.say(line));
  }

  /** Stops it at the end, before everything that was started earlier. */
  endWith<One extends { stop(): unknown }>(one: One): One {
    this.#endings.push(() => one.stop());
    return one;
  }

  async end(): Promise<void> {
    for (const ending of this.#endings.reverse()) await ending();
    rmSync(this.folder, { recursive: true });
  }
}
