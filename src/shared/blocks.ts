import { Type } from 'typebox';
import { id, isMade, matching, parsed, reasonText, timeMs } from './bounds.ts';
import type { SharedClock } from './clock.ts';
import { type Fact, type FactKind, Facts } from './facts.ts';

/** Who can be blocked. */
export const BLOCK_SCOPES = ['account', 'principal', 'organization', 'address'] as const;

export type BlockScope = (typeof BLOCK_SCOPES)[number];

/** What a 429 and the lists name in place of a bucket. */
export const BLOCKED = 'blocked';

/** Everything that somebody sends is refused until the block expires; or its removal. */
export interface Block extends Fact {
  readonly scope: BlockScope;
  /** An address is that of its network. */
  readonly id: string;
  readonly why: string;
  readonly by: string;
  /** Whether this removes an earlier one. */
  readonly isRemoved?: boolean;
}

/** Whoever is to be kept out for longer belongs in no identities file. */
export const LONGEST_BLOCK_MS = 7 * 86_400_000;

const asMessage = matching(
  Type.Object({
    scope: Type.Union(BLOCK_SCOPES.map((scope) => Type.Literal(scope))),
    id,
    atMs: timeMs,
    untilMs: timeMs,
    why: reasonText,
    by: reasonText,
    isRemoved: Type.Optional(Type.Boolean()),
  }),
);

export const BLOCKS: FactKind<Block> = {
  topic: 'blocks',
  most: 10_000,
  keyOf: ({ scope, id }) => blockKey(scope, id),
  write({ scope, id, atMs, untilMs, why, by, isRemoved }) {
    return JSON.stringify({ scope, id, atMs, untilMs, why, by, ...(isRemoved ? { isRemoved } : {}) });
  },
  read(text, nowMs) {
    const read: Block | undefined = asMessage(parsed(text));
    if (read === undefined) return undefined;
    const { atMs, untilMs } = read;
    return isMade(atMs, nowMs) && untilMs - atMs <= LONGEST_BLOCK_MS ? read : undefined;
  },
};

/** The blocks that this process knows. */
export class Blocks extends Facts<Block> {
  readonly clock: Pick<SharedClock, 'nowMs'>;

  /** @param clock that all replicas share */
  constructor(clock: Pick<SharedClock, 'nowMs'>) {
    super(BLOCKS);
    this.clock = clock;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** The block of one owner; undefined where there is none, or for no owner. */
  of(scope: BlockScope, id: string | undefined): Block | undefined {
    if (this.isEmpty || id === undefined) return undefined;
    const block = this.find(blockKey(scope, id), this.clock.nowMs());
    return block?.isRemoved ? undefined : block;
  }

  /** Those in force, the first to expire first. */
  inForce(): readonly Block[] {
    return this.remembered(this.clock.nowMs())
      .filter(({ isRemoved }) => !isRemoved)
      .sort((a, b) => a.untilMs - b.untilMs);
  }
}

/** What `find` takes. */
export function blockKey(scope: BlockScope, id: string): string {
  return `${scope} ${id}`;
}
