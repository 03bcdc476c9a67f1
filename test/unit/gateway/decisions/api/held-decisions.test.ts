import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type HeldDecision, HeldDecisions } from '../../../../../src/gateway/decisions/api/held-decisions.ts';
import type { GatewayDependencies } from '../../../../../src/gateway/dependencies.ts';
import type { DroppedReason, Settled } from '../../../../../src/store/store.ts';

const DECISION = {
  id: 'one',
  requestId: 'request-1',
  payer: { account: 'acct_1' },
  operation: { id: 'listThings' },
  charge: { buckets: [], cost: 40, heldMs: 10_000 },
  chargedAtUs: 1,
  decidedMs: 1,
} as unknown as HeldDecision;

const ENDED: Settled = { outcome: 'ended', buckets: [] };
const ALREADY: Settled = { outcome: 'already', buckets: [] };
const dropped = (reason: DroppedReason): Settled => ({ outcome: 'dropped', reason });

/** When the end of the decision is asked for. */
const END_MS = 12_000;

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

/** Decisions in a store that gives these answers, the last one again and again. */
function start(answers: readonly Settled[], answerMs = 0) {
  const counted: number[] = [];
  let asked = 0;
  const held = new HeldDecisions({
    store: {
      settle: async () => {
        const answer = answers[Math.min(asked, answers.length - 1)];
        asked++;
        if (answerMs > 0) await new Promise((resolve) => setTimeout(resolve, answerMs));
        return answer;
      },
    },
    observer: { heldEnded: (_: unknown, __: unknown, cost: number) => counted.push(cost) },
  } as unknown as GatewayDependencies);
  held.begun(DECISION);
  return { held, counted, asked: () => asked };
}

describe('a held decision', () => {
  it('that nobody has settled is counted with its reservation', async () => {
    const { counted, asked } = start([ENDED]);
    await vi.advanceTimersByTimeAsync(END_MS - 1);
    expect(counted).toEqual([]);
    await vi.advanceTimersByTimeAsync(600_000);
    expect([counted, asked()]).toEqual([[40], 1]);
  });

  it('that another replica has settled is not counted', async () => {
    const { counted, asked } = start([ALREADY]);
    await vi.advanceTimersByTimeAsync(600_000);
    expect([counted, asked()]).toEqual([[], 1]);
  });

  it.each(['expired', 'unknown', 'full'] as const)(
    'is asked for again if the store does not answer: %s',
    async (reason) => {
      const settled = start([dropped(reason), dropped(reason), ALREADY]);
      const unsettled = start([dropped(reason), dropped(reason), ENDED]);
      await vi.advanceTimersByTimeAsync(600_000);
      expect([settled.counted, settled.asked()]).toEqual([[], 3]);
      expect([unsettled.counted, unsettled.asked()]).toEqual([[40], 3]);
    },
  );

  it('is not counted, and no longer asked for, when the store cannot know any more whether it was settled', async () => {
    const silent = start([dropped('expired')]);
    const late = start([ENDED], 80_000);
    await vi.advanceTimersByTimeAsync(600_000);
    const asked = silent.asked();
    expect(asked).toBeGreaterThan(10);
    await vi.advanceTimersByTimeAsync(600_000);
    expect([silent.counted, silent.asked()]).toEqual([[], asked]);
    expect([late.counted, late.asked()]).toEqual([[], 1]);
  });

  it('is neither counted nor asked for again when the replica stops', async () => {
    const closed = start([dropped('closed')]);
    const stopped = start([dropped('expired')], 1_000);
    await vi.advanceTimersByTimeAsync(END_MS);
    stopped.held.close();
    await vi.advanceTimersByTimeAsync(600_000);
    expect([closed.counted, closed.asked()]).toEqual([[], 1]);
    expect([stopped.counted, stopped.asked()]).toEqual([[], 1]);
  });
});
