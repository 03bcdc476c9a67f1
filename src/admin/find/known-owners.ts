import { nearestOf } from '../../config/reader/value-messages.ts';
import type { Principal } from '../../domain/caller.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { SCOPES } from '../../domain/limits/scopes.ts';
import { BLOCK_SCOPES, type BlockScope, type Blocks } from '../../facts/blocks.ts';
import type { LiveLimits } from '../../facts/live-limits.ts';
import type { Directory } from '../../identity/identity-source.ts';
import type { Activity } from '../../observe/usage/activity.ts';
import type { OwnerReports } from '../fleet/owner-reports.ts';
import { UnknownOwner } from './unknown-owner.ts';

/** What a gateway can say of an id. `unlisted`: nobody here has seen it, and callers that no file lists may exist. */
type Knowledge = 'known' | 'unknown' | 'unlisted';

/** Ids of one scope that are compared with one that nobody has. */
const MOST_COMPARED = 20_000;
const MOST_NEAREST = 5;

/** Asks a directory in nobody's name: it knows what is not in a token. */
export const NOBODY: Principal = { id: '', type: 'Person', account: '', actsFor: new Set() };

/** Who exists, as far as files, a directory and the requests of the last minutes show it. */
export class KnownOwners {
  readonly #sources;

  constructor(sources: {
    readonly identities: {
      /** The ids of a scope that the files of identities have; undefined for addresses. */
      named(scope: BlockScope): ReadonlySet<string> | undefined;
      /** Whether the files list everybody. */
      readonly areListed: boolean;
      /** A principal of the files. */
      principalOf(id: string): Principal | undefined;
    };
    readonly activity: Activity;
    /** The principals that were seen lately; undefined where the files list everybody. */
    readonly seen: { has(principal: string): boolean; ids(): Iterable<string> } | undefined;
    readonly blocks: Blocks;
    readonly live: Pick<LiveLimits, 'inForce'>;
    readonly directory: Directory;
    limits(): Limits;
    /** Unix time by the clock of Redis. */
    nowMs(): number;
    reports(): OwnerReports;
  }) {
    this.#sources = sources;
  }

  /** Whether the files list everybody, so that an id that they lack does not exist. */
  get areListed(): boolean {
    return this.#sources.identities.areListed;
  }

  /** A principal of the files; undefined for others. */
  principalOf(id: string): Principal | undefined {
    return this.#sources.identities.principalOf(id);
  }

  /** What this replica knows of an id without asking anybody. Every address exists. */
  here(scope: BlockScope, id: string): Knowledge {
    const { identities, blocks, live, nowMs } = this.#sources;
    if (scope === 'address' || identities.named(scope)?.has(id) || this.#isOverridden(scope, id))
      return 'known';
    if (blocks.named(scope, id) !== undefined) return 'known';
    if (identities.areListed) return 'unknown';
    if (live.inForce(nowMs()).some((limit) => limit.id === id)) return 'known';
    return this.#isSeen(scope, id) ? 'known' : 'unlisted';
  }

  /** As `here`. If this replica does not know, it asks the directory and the other replicas, for up to a few seconds. */
  async knowledgeOf(scope: BlockScope, id: string): Promise<Knowledge> {
    const here = this.here(scope, id);
    if (here !== 'unlisted') return here;
    if (scope === 'account') {
      const found = await this.#sources.directory.find(id, NOBODY);
      if (found !== undefined && found !== 'unavailable') return 'known';
    }
    const { recent, refusals } = await this.#sources
      .reports()
      .sumOf({ scope: scope === 'principal' ? 'person' : scope, id }, true);
    return recent['10m'].requests > 0 || refusals.length > 0 ? 'known' : 'unlisted';
  }

  /** The scopes that have an id, addresses apart. */
  async scopesOf(id: string): Promise<readonly BlockScope[]> {
    const scopes = BLOCK_SCOPES.filter((scope) => scope !== 'address');
    const known = await Promise.all(scopes.map((scope) => this.knowledgeOf(scope, id)));
    return scopes.filter((_, index) => known[index] === 'known');
  }

  /** The ids of a scope that are similar to one, the most similar first. */
  nearest(scope: BlockScope, id: string): readonly string[] {
    return nearestOf(id, this.#candidates(scope), MOST_NEAREST);
  }

  /** Rejects with an UnknownOwner if nobody is known to have this id. */
  async refuseUnknown(scope: BlockScope, id: string): Promise<void> {
    const knowledge = await this.knowledgeOf(scope, id);
    if (knowledge !== 'known') throw await this.unknown(scope, id, knowledge);
  }

  /** What is said of an id that nobody is known to have. */
  async unknown(scope: BlockScope, id: string, knowledge: Knowledge): Promise<UnknownOwner> {
    return new UnknownOwner({
      scope,
      id,
      isListed: knowledge === 'unknown',
      nearest: this.nearest(scope, id),
      scopes: (await this.scopesOf(id)).filter((one) => one !== scope),
    });
  }

  #isSeen(scope: BlockScope, id: string): boolean {
    const { activity, seen } = this.#sources;
    if (scope === 'principal') return seen?.has(id) === true;
    return activity.payerOf(scope, id) !== undefined;
  }

  #isOverridden(scope: BlockScope, id: string): boolean {
    return this.#sources.limits()[SCOPES[scope].overrides].has(id);
  }

  *#candidates(scope: BlockScope): Generator<string> {
    const { identities, limits, seen } = this.#sources;
    let left = MOST_COMPARED;
    const lists = [
      identities.named(scope) ?? [],
      limits()[SCOPES[scope].overrides].keys(),
      (scope === 'principal' ? seen?.ids() : undefined) ?? [],
    ];
    const given = new Set<string>();
    for (const list of lists) {
      for (const id of list) {
        if (left-- <= 0) return;
        if (given.has(id)) continue;
        given.add(id);
        yield id;
      }
    }
  }
}
