import { counted } from '../../../domain/shown.ts';
import { ask } from '../api.ts';
import { confirmAction } from './dialog.ts';

/** Asks who has seen what was lost, and has no console show it any longer. */
export function seeLosses(count: number, untilMs: number): void {
  const until = new Date(untilMs).toISOString();
  confirmAction({
    title: 'Mark as seen',
    fields: [],
    confirm: 'Mark as seen',
    summary: () =>
      `The headline no longer shows ${count === 1 ? 'this loss' : `these ${counted(count, 'loss').replace(/s$/, 'ses')}`}, to anybody. The list of changes keeps it, with your name.`,
    async carryOut(values) {
      await ask('losses/seen', 'POST', { ...Object.fromEntries(values), until });
      return 'Marked as seen.';
    },
  });
}
