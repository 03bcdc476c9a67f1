import { bySection } from '../../config/files/limits/parse.ts';
import type { Problem } from '../../config/problem.ts';
import { suggestionOf } from '../../config/reader/messages.ts';
import { type LimitInForce, type Limits, limitInForce, rowNamed } from '../../domain/limits/limits.ts';
import { type OverrideSection, scopeNamed } from '../../domain/limits/scopes.ts';
import { type LiveLimit, liveKey } from '../../facts/live-limits.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import { ActionRefused } from '../action.ts';
import { changeFacts, type FactPublisher } from '../shared-change.ts';
import { aboutRaised, type RaisedLimit, raisedLimit } from './raised.ts';
import { type LimitOwner, type LimitRequest, problemText, readLimitRequest } from './request.ts';
import {
  type ShownOperation,
  type ShownPlan,
  type ShownRow,
  shownOperations,
  shownPlans,
  shownRows,
} from './rows.ts';

/** A live limit as an operator sees it. `notes`: what the operator should know of a change that has just been made. */
export type ShownLimit = ReturnType<typeof shown> & {
  /** What is in force in its place, where it is below the cost of an operation. */
  readonly inForce?: number;
  readonly notes?: readonly string[];
};

interface LiveLimitSources {
  readonly buckets: Buckets;
  readonly log: Pick<Changes, 'info' | 'error'>;
  /** Undefined where this process is the only replica. */
  readonly publisher: FactPublisher<LiveLimit> | undefined;
  /** The ids of a section that the files of identities have; undefined where others may exist. */
  knownOwners(section: OverrideSection): ReadonlySet<string> | undefined;
  /** The operations in force. */
  operations(): readonly ShownOperation[];
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
    return live.inForce(nowMs).map((limit) => ({
      ...shown(limit, this.#limits),
      ...raisedText(raisedLimit(limit, this.#sources.buckets)),
    }));
  }

  /** The limits of the files, for owners without a limit of their own. */
  rows(): readonly ShownRow[] {
    return shownRows(this.#limits);
  }

  /** The limits of each plan. */
  plans(): readonly ShownPlan[] {
    return shownPlans(this.#limits);
  }

  /** What each operation costs, the most expensive first. */
  operations(): readonly ShownOperation[] {
    return shownOperations(this.#sources.operations());
  }

  /** The limits of the files, which requests for live limits are checked against. */
  get #limits(): Limits {
    return this.#sources.buckets.limits;
  }

  /** Reads a request for live limits of an owner. @throws ActionRefused */
  read(body: unknown, owner: LimitOwner): LimitRequest {
    return readLimitRequest(body, owner, this.#limits);
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
      sectionOf(limit, this.#limits) === section &&
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
    const asked = Object.fromEntries(limits.map(({ bucket, limit }) => [bucket, { limit, shadow: false }]));
    const overrides = bySection((one) => new Map(one === section ? [[id, { limits: asked }]] : []));
    const problems = findCosts({ ...buckets.limits, ...overrides });
    if (problems.length > 0) throw new ActionRefused(problemText(problems));
  }

  /** Makes a change at the time of Redis, puts it in force here, and returns what is in force or removed. */
  async #change(
    action: string,
    reason: Pick<LiveLimit, 'why' | 'by'>,
    targets: readonly Target[],
    make: (atMs: number) => readonly LiveLimit[],
  ): Promise<readonly ShownLimit[]> {
    const { publisher, buckets, log } = this.#sources;
    const changed = { facts: buckets.live, log, publisher, nowMs: () => buckets.nowMs };
    const { made, notes } = await changeFacts(changed, {
      ...{ action, ...reason, make },
      keys: targets.map(({ bucket, id }) => liveKey(bucket, id)),
      details: (limits) => ({
        limits:
          limits?.map((limit) => shown(limit, this.#limits)) ??
          targets.map((one) => asked(one, this.#limits)),
      }),
    });
    for (const limit of made) applyLive(buckets, limit, log);
    return made.map((limit) => ({
      ...shown(limit, this.#limits),
      ...(notes.length > 0 ? { notes } : {}),
    }));
  }
}

/** A note where no identity belongs to an owner: it may be a typing error. Undefined where one does, or may. */
function noteOnOwner({ id }: LimitOwner, known: ReadonlySet<string> | undefined): string | undefined {
  if (known === undefined || known.has(id)) return undefined;
  return `No identity belongs to ${id}.${suggestionOf(id, known)} The limit is set all the same.`;
}

/** The bucket whose limit is changed. */
type Target = Pick<LiveLimit, 'bucket' | 'id' | 'limit'>;

function asked({ bucket, id, limit }: Target, limits: Limits) {
  // Without such a row the live limit has no effect. It is listed as an Account's, as which it can be removed.
  const { scope = 'account', counts = 'points' } = rowNamed(limits, bucket) ?? {};
  return { scope, id, bucket, limit, ...(counts !== 'points' && { counts }) };
}

/** Where a file would have a live limit; that of Accounts while the limits have no such row, so that it can be removed. */
function sectionOf({ bucket }: LiveLimit, limits: Limits): OverrideSection {
  const row = rowNamed(limits, bucket);
  return row === undefined ? 'accounts' : scopeNamed(row.scope).overrides;
}

/** What is in force in place of a live limit that is below a cost, and why. */
function raisedText(raised: RaisedLimit | undefined) {
  if (raised === undefined) return {};
  const { inForce, operation } = raised;
  return { inForce, notes: [`${inForce} is in force, because ${operation} costs as much.`] };
}

function shown({ untilMs, why, by, ...target }: LiveLimit, limits: Limits) {
  return { ...asked(target, limits), until: new Date(untilMs).toISOString(), why, by };
}

/**
 * Puts a live limit, or its removal, in force in this process and logs `limits.changed`. Does nothing if that is known already,
 * so each replica logs each change once, the one that made it as well.
 */
export function applyLive(buckets: Buckets, live: LiveLimit, log: Pick<Changes, 'info' | 'error'>): void {
  const { bucket, id, limit, untilMs, isRemoved, why, by } = live;
  const { nowMs } = buckets;
  const before = buckets.live.of(bucket, id, nowMs);
  const isChanged = buckets.applyLive(live);
  if (!isChanged || (isRemoved && before === undefined)) return;
  const row = rowNamed(buckets.limits, bucket);
  const filed = row && inFiles(limitInForce(buckets.limits, row, id, undefined, nowMs));
  const from = before === undefined ? filed : ofLive(before);
  const to = isRemoved ? filed : ofLive({ limit, untilMs });
  const change = isRemoved ? 'removed' : before === undefined ? 'added' : 'changed';
  const counts = { added: 0, removed: 0, changed: 0, [change]: 1 };
  const difference = [{ change, scope: row?.scope ?? null, id, bucket, from, to }];
  log.info({ source: 'live', why, by, ...counts, difference }, 'limits.changed');
  const raised = isRemoved ? undefined : raisedLimit(live, buckets);
  if (raised !== undefined) log.error({ ...raised, about: aboutRaised(raised) }, 'live-limit.raised');
}

function ofLive({ limit, untilMs }: Pick<LiveLimit, 'limit' | 'untilMs'>): object {
  return { limit, until: new Date(untilMs).toISOString() };
}

function inFiles({ limit }: LimitInForce): object {
  return { limit: limit ?? 'none' };
}
