import { bySection } from '../../config/files/limits/parse-limits.ts';
import type { Problem } from '../../config/problem.ts';
import type { Immutable } from '../../config/settings/settings.ts';
import { type Limits, rowNamed } from '../../domain/limits/limits.ts';
import { OVERRIDE_SECTIONS, type OverrideSection, scopeNamed } from '../../domain/limits/scopes.ts';
import type { FollowedFacts } from '../../facts/followed-facts.ts';
import { type LiveLimit, liveKey } from '../../facts/live-limits.ts';
import type { ChangeReason } from '../../facts/operator-facts.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import { ActionRefused } from '../action.ts';
import type { KnownOwners } from '../find/known-owners.ts';
import type { BlockApi } from './block-api.ts';
import type { FactApi } from './fact-api.ts';
import { changeFacts } from './fact-change.ts';
import { type LimitOwner, limitOwner, problemText, readLimitRequest, readRemoval } from './limit-request.ts';
import { type LimitTarget, raisedLimit } from './raised-limits.ts';

/** A live limit as an operator sees it. `notes`: what the operator should know of a change that has just been made. */
export type ShownLimit = ReturnType<typeof shown> & {
  /** What is in force in its place, where it is below the cost of an operation. */
  readonly inForce?: number;
  readonly notes?: readonly string[];
};

/** Sets, removes and lists live limits. Each change writes one audit line. */
export class LiveLimitApi implements FactApi {
  readonly path = '/limits/live';
  readonly title = 'The live limits and blocks';
  readonly #sources;

  constructor(sources: {
    readonly buckets: Buckets;
    readonly facts: FollowedFacts<LiveLimit>;
    /** Are listed before the live limits. */
    readonly blocks: Pick<BlockApi, 'list' | 'isRead' | 'ageSeconds'>;
    readonly log: Changes;
    readonly owners: Pick<KnownOwners, 'refuseUnknown'>;
    /** What the files set for a bucket of an owner; undefined if they have no such row. */
    filedLimit(bucket: string, id: string): Promise<number | 'none' | undefined>;
    /** The operations that could never be admitted under these limits. */
    findCosts(limits: Limits): readonly Problem[];
  }) {
    this.#sources = sources;
  }

  readonly routes: FactApi['routes'] = OVERRIDE_SECTIONS.flatMap((section) => {
    const path = `/limits/live/${section}/:id`;
    return [
      {
        method: 'PUT',
        path,
        change: async ({ id, body }) => {
          const owner = limitOwner(section, id);
          return this.set(owner, readLimitRequest(body, owner, this.#limits));
        },
      },
      {
        method: 'DELETE',
        path,
        change: async (request) => {
          const { buckets, ...reason } = readRemoval(request);
          return this.unset(limitOwner(section, request.id), buckets, reason);
        },
      },
    ];
  });

  get isRead(): boolean {
    const { facts, blocks } = this.#sources;
    return facts.isRead && blocks.isRead;
  }

  get ageSeconds(): number {
    const { facts, blocks } = this.#sources;
    return Math.max(facts.ageSeconds, blocks.ageSeconds);
  }

  async list(): Promise<readonly object[]> {
    return [...(await this.#sources.blocks.list()), ...this.limits()];
  }

  /** Those that are in force. */
  limits(): readonly ShownLimit[] {
    const { buckets } = this.#sources;
    return buckets.live.inForce(buckets.nowMs).map((limit) => ({
      ...shown(limit, this.#limits),
      ...raisedText(raisedLimit(limit, buckets)),
    }));
  }

  /** The limits of the files, which requests for live limits are checked against. */
  get #limits(): Limits {
    return this.#sources.buckets.limits;
  }

  /** Rejects with an ActionRefused where a limit is below the cost of an operation, or nobody is known to have the id. */
  async set(
    owner: LimitOwner,
    { limits, forMs, isForced, why, by }: Immutable<ReturnType<typeof readLimitRequest>>,
  ): Promise<readonly ShownLimit[]> {
    this.#refuseCosts(owner, limits);
    const { id } = owner;
    if (!isForced) await this.#sources.owners.refuseUnknown(SCOPE_OF[owner.section], id);
    const asked = await this.#withFiled(limits.map(({ bucket, limit }) => ({ bucket, id, limit })));
    return this.#change('limit set', { why, by }, asked, (atMs) =>
      asked.map((limit) => ({ ...limit, atMs, untilMs: atMs + forMs, why, by })),
    );
  }

  /** Removes the live limits of an owner: of the buckets that are named, or all. Rejects with an ActionRefused if there is none. */
  async unset(
    { section, id }: LimitOwner,
    names: readonly string[],
    reason: ChangeReason,
  ): Promise<readonly ShownLimit[]> {
    const isMeant = (limit: LiveLimit) =>
      limit.id === id &&
      sectionOf(limit, this.#limits) === section &&
      (names.length === 0 || names.includes(limit.bucket));
    const { live, nowMs } = this.#sources.buckets;
    const inForce = live.inForce(nowMs).filter(isMeant);
    if (inForce.length === 0) throw new ActionRefused(`${id} has no such live limit.`);
    const removed = await this.#withFiled(inForce);
    return this.#change('limit unset', reason, removed, (atMs) =>
      removed.map((limit) => ({ ...limit, ...reason, atMs, isRemoved: true })),
    );
  }

  #withFiled<T extends LimitTarget>(targets: readonly T[]) {
    const { filedLimit } = this.#sources;
    const known = targets.map(async (target) => {
      const filed = await filedLimit(target.bucket, target.id);
      return filed === undefined ? target : { ...target, filed };
    });
    return Promise.all(known);
  }

  #refuseCosts({ section, id }: LimitOwner, limits: readonly Pick<LimitTarget, 'bucket' | 'limit'>[]): void {
    const { buckets, findCosts } = this.#sources;
    const asked = Object.fromEntries(limits.map(({ bucket, limit }) => [bucket, { limit, shadow: false }]));
    const overrides = bySection((one) => new Map(one === section ? [[id, { limits: asked }]] : []));
    const problems = findCosts({ ...buckets.limits, ...overrides });
    if (problems.length > 0) throw new ActionRefused(problemText(problems));
  }

  /** Makes a change, and returns what is in force or removed. */
  async #change(
    action: string,
    { why, by }: ChangeReason,
    targets: readonly LimitTarget[],
    make: (atMs: number) => readonly LiveLimit[],
  ): Promise<readonly ShownLimit[]> {
    const { facts, log } = this.#sources;
    const { made, notes } = await changeFacts(facts, log, {
      action,
      why,
      by,
      keys: targets.map(({ bucket, id }) => liveKey(bucket, id)),
      details: (limits) => ({
        limits:
          limits?.map((limit) => shown(limit, this.#limits)) ??
          targets.map((one) => asked(one, this.#limits)),
      }),
      make,
    });
    return made.map((limit) => ({
      ...shown(limit, this.#limits),
      ...(notes.length > 0 ? { notes } : {}),
    }));
  }
}

/** Whose limits a section has. */
const SCOPE_OF = {
  accounts: 'account',
  organizations: 'organization',
  addresses: 'address',
  principals: 'principal',
} as const satisfies Record<OverrideSection, string>;

function asked({ bucket, id, limit }: LimitTarget, limits: Limits) {
  // Without such a row the live limit has no effect. It is listed as an Account's, as which it can be removed.
  const { scope = 'account', counts = 'points' } = rowNamed(limits, bucket) ?? {};
  return { scope, id, bucket, limit, ...(counts !== 'points' && { counts }) };
}

/** The section that a live limit would have in a file. `accounts` if its row no longer exists, so that it can still be removed. */
function sectionOf({ bucket }: LiveLimit, limits: Limits): OverrideSection {
  const row = rowNamed(limits, bucket);
  return row === undefined ? 'accounts' : scopeNamed(row.scope).overrides;
}

/** What is in force where a live limit is below a cost, and why. */
function raisedText(raised: ReturnType<typeof raisedLimit>) {
  if (raised === undefined) return {};
  const { inForce, about } = raised;
  return { inForce, notes: [`${inForce} is in force, because ${about}.`] };
}

function shown({ untilMs, why, by, ...target }: LiveLimit, limits: Limits) {
  return { ...asked(target, limits), until: new Date(untilMs).toISOString(), why, by };
}
