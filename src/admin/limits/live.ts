import type { Logger } from 'pino';
import { ConfigError, type Problem } from '../../config/problem.ts';
import { nearest } from '../../config/reader/messages.ts';
import { bucketNamed, type OverrideSection } from '../../domain/buckets.ts';
import { type LimitInForce, type Limits, limitInForce } from '../../domain/limits.ts';
import { type LiveLimit, liveKey } from '../../shared/live-limits.ts';
import type { Buckets } from '../../stages/buckets.ts';
import { ActionRefused } from '../action.ts';
import { audited, type FactPublisher } from '../shared-change.ts';
import { type LimitOwner, type LimitRequest, problemText } from './request.ts';

/** A live limit as an operator sees it. `notes`: what the operator should know of a change that has just been made. */
export type ShownLimit = ReturnType<typeof shown> & { readonly notes?: readonly string[] };

interface LiveLimitSources {
  readonly buckets: Buckets;
  readonly log: Logger;
  /** Undefined where this process is the only replica. */
  readonly publisher: FactPublisher<LiveLimit> | undefined;
  /** The ids of a section that the files of identities have; undefined where others may exist. */
  knownOwners(section: OverrideSection): ReadonlySet<string> | undefined;
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
    const { live, nowMs } = this.#sources.buckets;
    return live.inForce(nowMs).map(shown);
  }

  /** Rejects with an ActionRefused where a limit is below the cost of an operation. */
  async set(owner: LimitOwner, { limits, forMs, why, by }: LimitRequest): Promise<readonly ShownLimit[]> {
    this.#refuseCosts(owner, limits);
    const { id } = owner;
    const asked = limits.map(({ bucket, limit }) => ({ bucket, id, limit }));
    const note = noteOnOwner(owner, this.#sources.knownOwners(owner.section));
    const set = await this.#change('limit set', { why, by }, asked, (atMs) =>
      asked.map((limit) => ({ ...limit, atMs, untilMs: atMs + forMs, why, by })),
    );
    return note === undefined ? set : set.map((one) => ({ ...one, notes: [note, ...(one.notes ?? [])] }));
  }

  /** Removes the live limits of an owner: those of the buckets that are named, or all. Rejects with an ActionRefused where there is none. */
  async unset(
    { section, id }: LimitOwner,
    names: readonly string[],
    reason: Pick<LiveLimit, 'why' | 'by'>,
  ): Promise<readonly ShownLimit[]> {
    const isMeant = (limit: LiveLimit) =>
      limit.id === id &&
      bucketNamed(limit.bucket).scope.overrides === section &&
      (names.length === 0 || names.includes(limit.bucket));
    const { live, nowMs } = this.#sources.buckets;
    const inForce = live.inForce(nowMs).filter(isMeant);
    if (inForce.length === 0) throw new ActionRefused(`${id} has no such live limit.`);
    return this.#change('limit unset', reason, inForce, (atMs) =>
      inForce.map((limit) => ({ ...limit, ...reason, atMs, isRemoved: true })),
    );
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

  /** Makes a change at the time of Redis, puts it in force here, and returns what is in force or removed. */
  async #change(
    action: string,
    reason: Pick<LiveLimit, 'why' | 'by'>,
    targets: readonly Target[],
    make: (atMs: number) => readonly LiveLimit[],
  ): Promise<readonly ShownLimit[]> {
    const { publisher, buckets, log } = this.#sources;
    let made: readonly LiveLimit[] | undefined;
    const details = () => ({ limits: made?.map((limit) => shown(limit)) ?? targets.map(asked) });
    const notes = await audited(log, { action, ...reason, details }, async () => {
      const replaced = this.#known(targets);
      made = make(timeAfter(replaced, (await publisher?.nowMs()) ?? buckets.nowMs));
      return publisher?.publish(made, replaced);
    });
    for (const limit of made ?? []) applyLive(buckets, limit, log);
    return (made ?? []).map((limit) => ({ ...shown(limit), ...(notes.length > 0 ? { notes } : {}) }));
  }

  #known(targets: readonly Target[]): readonly LiveLimit[] {
    const { live, nowMs } = this.#sources.buckets;
    return targets.flatMap((target) => live.find(liveKey(target.bucket, target.id), nowMs) ?? []);
  }
}

/** A note where no identity belongs to an owner: it may be a typing error. Undefined where one does, or may. */
function noteOnOwner({ id }: LimitOwner, known: ReadonlySet<string> | undefined): string | undefined {
  if (known === undefined || known.has(id)) return undefined;
  const suggestion = nearest(id, [...known]);
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  return `No identity belongs to ${id}.${hint} The limit is set all the same.`;
}

/** The bucket whose limit is changed. */
type Target = Pick<LiveLimit, 'bucket' | 'id' | 'limit'>;

/** Later than every earlier change of these limits, though both may be of one millisecond. */
function timeAfter(earlier: readonly LiveLimit[], nowMs: number): number {
  return Math.max(nowMs, ...earlier.map(({ atMs }) => atMs + 1));
}

function asked({ bucket, id, limit }: Target) {
  return { scope: bucketNamed(bucket).scopeName, id, bucket, limit };
}

function shown({ untilMs, why, by, ...target }: LiveLimit) {
  return { ...asked(target), until: new Date(untilMs).toISOString(), why, by };
}

/**
 * Puts a live limit, or its removal, in force in this process and logs `limits.changed`. Does nothing if that is known already,
 * so each replica logs each change once, the one that made it as well.
 */
export function applyLive(buckets: Buckets, live: LiveLimit, log: Logger): void {
  const { bucket, id, limit, untilMs, isRemoved, why, by } = live;
  const { nowMs } = buckets;
  const before = buckets.live.of(bucket, id, nowMs);
  const isChanged = buckets.applyLive(live);
  if (!isChanged || (isRemoved && before === undefined)) return;
  const filed = inFiles(limitInForce(buckets.limits, bucket, id, nowMs));
  const from = before === undefined ? filed : ofLive(before);
  const to = isRemoved ? filed : ofLive({ limit, untilMs });
  const change = isRemoved ? 'removed' : before === undefined ? 'added' : 'changed';
  const counts = { added: 0, removed: 0, changed: 0, [change]: 1 };
  const difference = [{ change, scope: bucketNamed(bucket).scopeName, id, bucket, from, to }];
  log.info({ source: 'live', why, by, ...counts, difference }, 'limits.changed');
}

function ofLive({ limit, untilMs }: Pick<LiveLimit, 'limit' | 'untilMs'>): object {
  return { limit, until: new Date(untilMs).toISOString() };
}

function inFiles({ limit }: LimitInForce): object {
  return { limit: limit ?? 'none' };
}
