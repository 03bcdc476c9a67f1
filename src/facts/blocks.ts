import { Type } from 'typebox';
import { type FactKind, Facts } from './facts.ts';
import { id } from './message-bounds.ts';
import { OPERATOR_MEMBERS, type OperatorFact, operatorKind } from './operator-facts.ts';
import type { SharedClock } from './shared-clock.ts';

/** Who can be blocked. */
export const BLOCK_SCOPES = ['account', 'principal', 'organization', 'address'] as const;

export type BlockScope = (typeof BLOCK_SCOPES)[number];

/** The bucket that a 429 and the lists name. */
export const BLOCKED = 'blocked';

/** Everything that somebody sends is refused until the block expires; or its removal. */
export interface Block extends OperatorFact {
  readonly scope: BlockScope;
  /** For an address, its network. */
  readonly id: string;
}

const message = Type.Object({
  scope: Type.Union(BLOCK_SCOPES.map((scope) => Type.Literal(scope))),
  id,
  ...OPERATOR_MEMBERS,
});

export const BLOCKS: FactKind<Block> = operatorKind(message, {
  topic: 'blocks',
  plural: 'blocks',
  metric: 'block',
  most: 10_000,
  keyOf: ({ scope, id }) => blockKey(scope, id),
});

/** The blocks that this process knows. */
export class Blocks extends Facts<Block> {
  readonly clock: Pick<SharedClock, 'nowMs'>;

  /** @param clock that all replicas share */
  constructor(clock: Pick<SharedClock, 'nowMs'>) {
    super(BLOCKS);
    this.clock = clock;
  }

  /** The block of one owner; undefined if there is none, or no owner. */
  of(scope: BlockScope, id: string | undefined): Block | undefined {
    if (this.isEmpty || id === undefined) return undefined;
    return this.findInForce(blockKey(scope, id), this.clock.nowMs());
  }
}

/** What `find` takes. */
export function blockKey(scope: BlockScope, id: string): string {
  return `${scope} ${id}`;
}
