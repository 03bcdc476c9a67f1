import { suggestionOf } from '../../config/reader/messages.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { ID_FORMAT, isId } from '../../domain/caller.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import { networkOf } from '../../domain/network.ts';
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
import type { Changes } from '../../observe/log/changes.ts';
import { ActionRefused, readDuration, readReason } from '../action.ts';
import { type FactApi, membersOf } from './fact-api.ts';
import { changeFacts } from './fact-change.ts';

/** A block as an operator sees it, in the form of a live limit. `notes`: what the operator should know of one that has just been made. */
export type ShownBlock = ReturnType<typeof shownBlock> & { readonly notes?: readonly string[] };

interface BlockSources {
  readonly blocks: Blocks;
  readonly facts: FollowedFacts<Block>;
  readonly log: Pick<Changes, 'info'>;
  /** The ids of a scope that the files of identities have; undefined where others may exist. */
  known(scope: BlockScope): ReadonlySet<string> | undefined;
}

/** Who is blocked. */
interface BlockTarget {
  readonly scope: BlockScope;
  readonly id: string;
}

/** An owner as blocks are stored for it: an address stands for its network. Throws an ActionRefused for what is no id. */
function blockTarget(scope: BlockScope, given: string): BlockTarget {
  const id = scope === 'address' ? networkOf(given) : given;
  if (id === undefined) throw new ActionRefused(`${given} is not an IP address.`);
  if (!isId(id)) throw new ActionRefused(`What is blocked must have ${ID_FORMAT}.`);
  return { scope, id };
}

/** Blocks, unblocks and lists. Each change writes one audit line. */
export class BlockApi implements FactApi {
  readonly path = '/blocks';
  readonly #sources: BlockSources;

  constructor(sources: BlockSources) {
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

  get ageSeconds(): number {
    return this.#sources.facts.ageSeconds;
  }

  async list(): Promise<readonly ShownBlock[]> {
    const { blocks, facts } = this.#sources;
    return blocks.inForce(facts.nowMs).map(shownBlock);
  }

  /** @param body such as `{"for": "1h", "why": "leak", "by": "alice"}` */
  async #block(target: BlockTarget, body: unknown): Promise<ShownBlock> {
    const { forMs, ...reason } = readRequest(body);
    const made = await this.#change('blocked', target, reason, (atMs) => ({
      ...target,
      atMs,
      untilMs: atMs + forMs,
      ...reason,
    }));
    const note = this.#noteOn(target);
    return note === undefined ? made : { ...made, notes: [note, ...(made.notes ?? [])] };
  }

  /** Rejects with an ActionRefused where nothing is blocked. */
  async #unblock(target: BlockTarget, { why, by }: Readonly<Record<string, unknown>>): Promise<ShownBlock> {
    const reason = readReason(why, by);
    const block = this.#sources.blocks.of(target.scope, target.id);
    if (block === undefined) throw new ActionRefused(`${target.scope} ${target.id} is not blocked.`);
    return this.#change('unblocked', target, reason, (atMs) => ({
      ...block,
      atMs,
      ...reason,
      isRemoved: true,
    }));
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

  /** A note where no identity has this id: it may be a typing error, or of another scope. */
  #noteOn({ scope, id }: BlockTarget): string | undefined {
    const { known } = this.#sources;
    const ids = known(scope);
    if (ids === undefined || ids.has(id)) return undefined;
    const others: readonly BlockScope[] = ['account', 'principal', 'organization'];
    const other = others.find((one) => known(one)?.has(id));
    const hint = other === undefined ? suggestionOf(id, ids) : ` There is a ${other} of that name.`;
    return `There is no ${scope} ${id}.${hint} It is blocked all the same.`;
  }
}

function readRequest(body: unknown) {
  if (!isMapping(body)) throw new ActionRefused('Send a JSON object such as {"for": "1h", "why": "leak"}.');
  const { for: duration = '1h', why, by, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new ActionRefused(`${unknown}: is unknown. A block has for, why and by.`);
  const forMs = readDuration(duration, LONGEST_MS);
  if (forMs === undefined)
    throw new ActionRefused('for: must be a time such as 30m, 2h or 7d, and at most 7d.');
  return { forMs, ...readReason(why, by) };
}

export function shownBlock({ scope, id, untilMs, why, by }: Block) {
  return { scope, id, bucket: BLOCKED, limit: 0, until: new Date(untilMs).toISOString(), why, by } as const;
}
