import { expect, it } from 'vitest';
import { Fleet } from '../../../../src/admin/fleet/fleet.ts';
import type { Talkers } from '../../../../src/observe/usage/talkers.ts';
import type { Board } from '../../../../src/store/shared-store.ts';

it('a publication that fails ends neither the process nor the next ones', async () => {
  let attempts = 0;
  const posted: string[] = [];
  const board: Board = {
    async post(text) {
      posted.push(text);
    },
    read: async () => ({ texts: new Map(), leftOut: 0 }),
    close: async () => {},
  };
  const sources = {
    talkers: { summary: async () => ({ format: 1 }) } as unknown as Talkers,
    blocks: { of: () => undefined },
    pulse() {
      if (++attempts === 1) throw new Error('EMFILE: too many open files');
      return {} as never;
    },
    nowMs: () => 0,
    ignored: { add() {} },
  };
  const fleet = new Fleet('replica', sources, board);
  await expect.poll(() => posted.length).toBeGreaterThan(0);
  expect(attempts).toBeGreaterThan(1);
  await fleet.close();
});
