import { suggestionOf } from '../../config/reader/messages.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { ID_FORMAT, isId } from '../../domain/caller.ts';
import { networkOf } from '../../domain/network.ts';
import { BLOCKED, type Block, type BlockScope, type Blocks, blockKey } from '../../facts/blocks.ts';
import { LONGEST_MS } from '../../facts/operator-facts.ts';
import type { Changes } from '../../observe/log/changes.ts';
import { ActionRefused, readDuration, readReason } from '../action.ts';
import { changeFacts, type FactPublisher } from '../shared-change.ts';

/** A block as an operator sees it, in the form of a live limit. `notes`: what the operator should know of one that has just been made. */
export type ShownBlock = ReturnType<typeof shownBlock> & { readonly notes?: readonly string[] };

interface BlockSources {
  readonly blocks: Blocks;
  readonly log: Pick<Changes, 'info'>;
  /** Undefined where this process is the only replica. */
  readonly publisher: FactPublisher<Block> | undefined;
  /** The ids of a scope that the files of identities have; undefined where others may exist. */
  known(scope: BlockScope): ReadonlySet<string> | undefined;
}

/** Whoever is blocked. */
interface Target {
  readonly scope: BlockScope;
  readonly id: string;
}

/** An owner as blocks are stored for it: an address stands for its network. Throws an ActionRefused for what is no id. */
export function blockTarget(scope: BlockScope, given: string): Target {
  const id = scope === 'address' ? networkOf(given) : given;
  if (id === undefined) throw new ActionRefused(`${given} is not an IP address.`);
  if (!isId(id)) throw new ActionRefused(`What is blocked must have ${ID_FORMAT}.`);
  return { scope, id };
}

/** Blocks, unblocks and lists. Each action writes one audit line. */
export class BlockActions {
  readonly #sources: BlockSources;

  constructor(sources: BlockSources) {
    this.#sources = sources;
  }

  list(): readonly ShownBlock[] {
    const { blocks } = this.#sources;
    return blocks.inForce(blocks.clock.nowMs()).map(shownBlock);
  }

  /** @param body such as `{"for": "1h", "why": "leak", "by": "alice"}` */
  async block(target: Target, body: unknown): Promise<ShownBlock> {
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
  async unblock(target: Target, { why, by }: Readonly<Record<string, unknown>>): Promise<ShownBlock> {
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
    target: Target,
    reason: Pick<Block, 'why' | 'by'>,
    make: (atMs: number) => Block,
  ): Promise<ShownBlock> {
    const { blocks, log, publisher } = this.#sources;
    const changed = { facts: blocks, log, publisher, nowMs: () => blocks.clock.nowMs() };
    const { made, notes } = await changeFacts(changed, {
      ...{ action, ...reason },
      keys: [blockKey(target.scope, target.id)],
      details: ([block] = []) => ({ block: block === undefined ? target : shownBlock(block) }),
      make: (atMs) => [make(atMs)],
    });
    const [block] = made;
    if (block === undefined) throw new Error('a change that succeeded made nothing');
    applyBlock(blocks, block, log);
    return { ...shownBlock(block), ...(notes.length > 0 ? { notes } : {}) };
  }

  /** A note where no identity has this id: it may be a typing error, or of another scope. */
  #noteOn({ scope, id }: Target): string | undefined {
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

/** Puts a block, or its removal, in force in this process and logs it. Does nothing if that is known already. */
export function applyBlock(blocks: Blocks, block: Block, changes: Pick<Changes, 'info'>): void {
  const { scope, id, untilMs, why, by, isRemoved } = block;
  if (!blocks.add(block, blocks.clock.nowMs())) return;
  const until = isRemoved ? undefined : new Date(untilMs).toISOString();
  const members = { about: `${scope} ${id}`, scope, id, until, why, by };
  changes.info(members, isRemoved ? 'block.undone' : 'block.made');
}
