import { applyBlock } from '../../admin/blocks/actions.ts';
import { BLOCKS, type Block, Blocks } from '../../facts/blocks.ts';
import { SharedClock } from '../../facts/clock.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import { type Reported, type RunningFacts, runFacts } from './run-facts.ts';

export interface RunningBlocks extends RunningFacts<Block> {
  readonly blocks: Blocks;
}

/** Follows who is blocked, at all replicas. */
export function runBlocks(
  shared: SharedStore | undefined,
  { observer, log, changes }: Omit<Reported, 'clock'>,
): RunningBlocks {
  // In a Cluster the blocks may be at another node than the live limits, so they have a clock of their own.
  const clock = new SharedClock();
  const blocks = new Blocks(clock);
  const running = runFacts(shared, {
    kind: BLOCKS,
    facts: blocks,
    words: { plural: 'blocks', metric: 'block' },
    ...{ clock, observer, log, changes },
    apply: (block) => applyBlock(blocks, block, changes),
    ended: ({ scope, id, why, by }) =>
      changes.info({ about: `${scope} ${id}`, scope, id, why, by }, 'block.ended'),
  });
  return { ...running, blocks };
}
