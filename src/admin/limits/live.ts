import type { Logger } from 'pino';
import { ConfigError, type Problem } from '../../config/problem.ts';
import { type BucketName, bucketNamed, type ScopeName } from '../../domain/buckets.ts';
import type { Limits } from '../../domain/limits.ts';
import { type LiveLimit, writeLiveLimit } from '../../domain/live-limits.ts';
import type { Buckets } from '../../gateway/buckets.ts';
import { ActionRefused, unavailable } from '../action.ts';
import { applyLive } from './apply.ts';
import { type LimitOwner, type LimitRequest, problemText } from './request.ts';

/** A live limit as an operator sees it. */
export interface ShownLimit {
  readonly scope: ScopeName;
  readonly id: string;
  readonly bucket: BucketName;
  readonly limit: number;
  readonly until: string;
  readonly why: string;
  readonly by: string;
}

/** Where live limits are sent, so that other replicas receive them. */
export interface LimitPublisher {
  /** Unix time by the clock that all replicas share. */
  nowMs(): Promise<number>;
  /** Rejects where the limits were not stored. `replaced` are those that the new ones take the place of. */
  publish(limits: readonly LiveLimit[], replaced: readonly LiveLimit[]): Promise<void>;
}

export interface LiveLimitSources {
  readonly buckets: Buckets;
  readonly log: Logger;
  /** Undefined where this process is the only replica. */
  readonly publisher: LimitPublisher | undefined;
  /** The operations that could never be admitted under these limits. */
  findCosts(limits: Limits): readonly Problem[];
}

/** Sets, removes and lists live limits. Each action writes one audit line. */
export class LiveLimitActions {
  readonly #sources: LiveLimitSources;

  constructor(sources: LiveLimitSources) {
    this.#sources = sources;
  }

  list(): readonly ShownLimit[] {
    return this.#sources.buckets.live.inForce(Date.now()).map(shown);
  }

  /** Rejects with an ActionRefused where a limit is below the cost of an operation. */
  async set(owner: LimitOwner, { limits, forMs, why, by }: LimitRequest): Promise<readonly ShownLimit[]> {
    this.#refuseCosts(owner, limits);
    const { id } = owner;
    const atMs = await this.#timeAfter(limits.map(({ bucket }) => ({ bucket, id })));
    const set = limits.map(({ bucket, limit }) => ({
      bucket,
      id,
      limit,
      atMs,
      untilMs: atMs + forMs,
      why,
      by,
    }));
    await this.#apply(set);
    this.#audit('limit set', set);
    return set.map(shown);
  }

  /** Removes the live limits of an owner: those of the buckets that are named, or all. Rejects with an ActionRefused where there is none. */
  async unset(
    { section, id }: LimitOwner,
    buckets: readonly string[],
    reason: Pick<LiveLimit, 'why' | 'by'>,
  ): Promise<readonly ShownLimit[]> {
    const isMeant = (limit: LiveLimit) =>
      limit.id === id &&
      bucketNamed(limit.bucket).scope.overrides === section &&
      (buckets.length === 0 || buckets.includes(limit.bucket));
    const inForce = this.#sources.buckets.live.inForce(Date.now()).filter(isMeant);
    if (inForce.length === 0) throw new ActionRefused(`${id} has no such live limit.`);
    const atMs = await this.#timeAfter(inForce);
    const removed = inForce.map((limit) => ({ ...limit, ...reason, atMs, isRemoved: true }));
    await this.#apply(removed);
    this.#audit('limit unset', removed);
    return removed.map(shown);
  }

  #refuseCosts({ section, id }: LimitOwner, limits: LimitRequest['limits']): void {
    const { buckets, findCosts } = this.#sources;
    const overrides = Object.fromEntries(
      limits.map(({ bucket, limit }) => [bucket, { limit, shadow: false }]),
    );
    const none = { accounts: new Map(), organizations: new Map(), addresses: new Map() };
    const problems = findCosts({ ...buckets.limits, ...none, [section]: new Map([[id, overrides]]) });
    if (problems.length > 0) throw new ActionRefused(problemText(new ConfigError(problems)));
  }

  /** Later than every earlier change of these limits, though both may be of one millisecond. */
  async #timeAfter(targets: readonly Pick<LiveLimit, 'bucket' | 'id'>[]): Promise<number> {
    const { publisher } = this.#sources;
    const nowMs = publisher === undefined ? Date.now() : await publisher.nowMs().catch(unavailable);
    return Math.max(nowMs, ...this.#known(targets).map(({ atMs }) => atMs + 1));
  }

  #known(targets: readonly Pick<LiveLimit, 'bucket' | 'id'>[]): readonly LiveLimit[] {
    const known = this.#sources.buckets.live.remembered(Date.now());
    return known.filter((one) => targets.some(({ bucket, id }) => one.bucket === bucket && one.id === id));
  }

  async #apply(limits: readonly LiveLimit[]): Promise<void> {
    const { buckets, publisher, log } = this.#sources;
    await publisher?.publish(limits, this.#known(limits)).catch(unavailable);
    for (const limit of limits) applyLive(buckets, limit, log);
  }

  #audit(action: string, limits: readonly LiveLimit[]): void {
    const [{ why, by } = { why: '', by: '' }] = limits;
    this.#sources.log.info({ audit: true, action, by, why, limits: limits.map(shown) }, action);
  }
}

function shown({ bucket, id, limit, untilMs, why, by }: LiveLimit): ShownLimit {
  return {
    scope: bucketNamed(bucket).scopeName,
    id,
    bucket,
    limit,
    until: new Date(untilMs).toISOString(),
    why,
    by,
  };
}

/** The message of a live limit, and how long it is kept. */
export function recorded(limit: LiveLimit): { readonly text: string; readonly untilMs: number } {
  return { text: writeLiveLimit(limit), untilMs: limit.untilMs };
}
