import { Type } from 'typebox';
import { AddressRanges } from './address-ranges.ts';
import { type Fact, type FactKind, Facts } from './facts.ts';
import { id } from './message-bounds.ts';
import { type ChangeReason, OPERATOR_MEMBERS, operatorKind } from './operator-facts.ts';
import type { SharedClock } from './shared-clock.ts';

/** Who can be blocked. */
export const BLOCK_SCOPES = ['account', 'principal', 'organization', 'address'] as const;

export type BlockScope = (typeof BLOCK_SCOPES)[number];

/** The bucket that a 429 and the lists name. */
export const BLOCKED = 'blocked';

/** Everything that somebody sends is refused until the block expires; or its removal. */
export interface Block extends Fact, ChangeReason {
  readonly scope: BlockScope;
  /** For an address, its network; or a range of addresses such as `10.0.0.0/8`. */
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
  /** May have ranges whose blocks have ended. */
  readonly #ranges = new AddressRanges();

  /** @param clock that all replicas share */
  constructor(clock: Pick<SharedClock, 'nowMs'>) {
    super(BLOCKS);
    this.clock = clock;
  }

  override add(block: Block, nowMs: number): boolean {
    const isAdded = super.add(block, nowMs);
    if (isAdded && block.scope === 'address' && !block.isRemoved) this.#addRange(block.id);
    return isAdded;
  }

  /** The block that applies to an owner: its own, or the one of a range that has its address. Undefined if there is none, or no owner. */
  of(scope: BlockScope, id: string | undefined): Block | undefined {
    if (this.isEmpty || id === undefined) return undefined;
    const own = this.named(scope, id);
    if (own !== undefined || scope !== 'address' || this.#ranges.size === 0) return own;
    return this.#ranges
      .around(id)
      .flatMap((range) => this.named(scope, range) ?? [])
      .reduce<Block | undefined>(
        (last, one) => (last && last.untilMs >= one.untilMs ? last : one),
        undefined,
      );
  }

  /** The block of exactly this owner or range. */
  named(scope: BlockScope, id: string): Block | undefined {
    return this.findInForce(blockKey(scope, id), this.clock.nowMs());
  }

  #addRange(id: string): void {
    if (this.#ranges.size > 2 * this.size) {
      this.#ranges.clear();
      for (const { scope, id: other, isRemoved } of this.all())
        if (scope === 'address' && !isRemoved) this.#ranges.add(other);
    }
    this.#ranges.add(id);
  }
}

/** What `find` takes. */
export function blockKey(scope: BlockScope, id: string): string {
  return `${scope} ${id}`;
}
