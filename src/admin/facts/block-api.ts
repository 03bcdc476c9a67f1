import { isMapping } from '../../config/reader/schema-node.ts';
import { ID_FORMAT, isId } from '../../domain/caller.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import { rangeOf } from '../../domain/network.ts';
import {
  BLOCK_SCOPES,
  BLOCKED,
  type Block,
  type BlockScope,
  type Blocks,
  blockKey,
} from '../../facts/blocks.ts';
import type { FollowedFacts } from '../../facts/followed-facts.ts';
import { type ChangeReason, LONGEST_MS } from '../../facts/operator-facts.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import { ActionRefused, readDuration, readForce, readReason } from '../action.ts';
import type { KnownOwners } from '../find/known-owners.ts';
import { type FactApi, membersOf } from './fact-api.ts';
import { changeFacts } from './fact-change.ts';

/** A block as an operator sees it, in the form of a live limit. `notes`: what the operator should know of one that has just been made. */
export type ShownBlock = ReturnType<typeof shownBlock> & { readonly notes?: readonly string[] };

/** Who is blocked. */
interface BlockTarget {
  readonly scope: BlockScope;
  readonly id: string;
}

const NO_ADDRESS =
  'is neither an IP address nor a range such as 10.0.0.0/8 or 2001:db8::/32 (at most /64 for IPv6).';

/** An owner as blocks are stored for it: an address stands for its network. Throws an ActionRefused for what is no id. */
function blockTarget(scope: BlockScope, given: string): BlockTarget {
  const id = scope === 'address' ? rangeOf(given) : given;
  if (id === undefined) throw new ActionRefused(`${given} ${NO_ADDRESS}`);
  if (!isId(id)) throw new ActionRefused(`What is blocked must have ${ID_FORMAT}.`);
  return { scope, id };
}

/** Blocks, unblocks and lists. Each change writes one audit line. */
export class BlockApi implements FactApi {
  readonly path = '/blocks';
  readonly title = 'The blocks';
  readonly #sources;

  constructor(sources: {
    readonly blocks: Blocks;
    readonly facts: FollowedFacts<Block>;
    readonly log: Changes;
    readonly owners: KnownOwners;
  }) {
    this.#sources = sources;
  }

  readonly routes: FactApi['routes'] = BLOCK_SCOPES.flatMap((scope) => {
    const path = `/blocks/${scopeNamed(scope).plural}/:id`;
    return [
      { method: 'PUT', path, change: async ({ id, body }) => this.#block(blockTarget(scope, id), body) },
      {
        method: 'DELETE',
        path,
        change: async (request) => this.#unblock(blockTarget(scope, request.id), membersOf(request)),
      },
    ];
  });

  get isRead(): boolean {
    return this.#sources.facts.isRead;
  }

  get ageSeconds(): number {
    return this.#sources.facts.ageSeconds;
  }

  async list(): Promise<readonly ShownBlock[]> {
    const { blocks, facts } = this.#sources;
    return blocks.inForce(facts.nowMs).map(shownBlock);
  }

  /**
   * Rejects with an UnknownOwner for what nobody is known to have, unless it is forced.
   *
   * @param body such as `{"for": "1h", "why": "leak", "by": "alice"}`
   */
  async #block(target: BlockTarget, body: unknown): Promise<ShownBlock> {
    const { forMs, isForced, ...reason } = readRequest(body);
    if (!isForced) {
      refuseWide(target);
      await this.#sources.owners.refuseUnknown(target.scope, target.id);
    }
    return this.#change('blocked', target, reason, (atMs) => ({
      ...target,
      atMs,
      untilMs: atMs + forMs,
      ...reason,
    }));
  }

  /** Rejects with an ActionRefused where nothing is blocked. */
  async #unblock(target: BlockTarget, { why, by }: Readonly<Record<string, unknown>>): Promise<ShownBlock> {
    const reason = readReason(why, by);
    const { scope, id } = target;
    const block = this.#sources.blocks.named(scope, id);
    if (block === undefined) {
      const wider = this.#around(target);
      const hint = wider === undefined ? '' : ` It is within ${wider.id}, which is.`;
      throw new ActionRefused(`${scope} ${id} is not blocked.${hint}`);
    }
    return this.#change('unblocked', target, reason, (atMs) => ({
      ...block,
      atMs,
      ...reason,
      isRemoved: true,
    }));
  }

  /** The block of a range that has this address or range within it. */
  #around({ scope, id }: BlockTarget): Block | undefined {
    if (scope !== 'address') return undefined;
    const { blocks, facts } = this.#sources;
    return blocks.inForce(facts.nowMs).find((one) => one.scope === 'address' && isWithin(id, one.id));
  }

  async #change(
    action: string,
    target: BlockTarget,
    { why, by }: ChangeReason,
    make: (atMs: number) => Block,
  ): Promise<ShownBlock> {
    const { facts, log } = this.#sources;
    const { made, notes } = await changeFacts(facts, log, {
      action,
      why,
      by,
      keys: [blockKey(target.scope, target.id)],
      details: ([block] = []) => ({ block: block === undefined ? target : shownBlock(block) }),
      make: (atMs) => [make(atMs)],
    });
    const [block] = made;
    if (block === undefined) throw new Error('a change that succeeded made nothing');
    return { ...shownBlock(block), ...(notes.length > 0 ? { notes } : {}) };
  }
}

/** Whether all addresses of a range, or an address, are in another range. Both are as `rangeOf` returns them. */
function isWithin(id: string, range: string): boolean {
  const [base, own] = partsOf(id);
  const [, bits] = partsOf(range);
  return own >= bits && rangeOf(`${base}/${bits}`) === range;
}

/** Its first address, and how many leading bits all of its addresses share. */
function partsOf(range: string): readonly [base: string, bits: number] {
  const [base = '', bits = '32'] = range.split('/');
  return [base, Number(bits)];
}

/** Wider ranges are more likely a slip than meant. */
const WIDEST = { ipv4: 8, ipv6: 16 };

function refuseWide({ scope, id }: BlockTarget): void {
  const bits = scope === 'address' ? id.split('/')[1] : undefined;
  const widest = id.includes(':') ? WIDEST.ipv6 : WIDEST.ipv4;
  if (bits === undefined || Number(bits) >= widest) return;
  throw new ActionRefused(
    `${id} is a large part of all addresses. A range of less than /${widest} needs force: --force, or "force": true in JSON.`,
  );
}

function readRequest(body: unknown) {
  if (!isMapping(body)) throw new ActionRefused('Send a JSON object such as {"for": "1h", "why": "leak"}.');
  const { for: duration = '1h', why, by, force, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new ActionRefused(`${unknown}: is unknown. A block has for, why, by and force.`);
  const forMs = readDuration(duration, LONGEST_MS);
  if (forMs === undefined)
    throw new ActionRefused('for: must be a time such as 30m, 2h or 7d, and at most 7d.');
  return { forMs, isForced: readForce(force), ...readReason(why, by) };
}

export function shownBlock({ scope, id, untilMs, why, by }: Block) {
  return { scope, id, bucket: BLOCKED, limit: 0, until: new Date(untilMs).toISOString(), why, by } as const;
}
