import { PLAIN_PROXY } from '../contestants/all.ts';
import { median } from '../measure/lineup.ts';
import type { MessageRounds } from '../measure/messages.ts';

/** CPU of the gateway for each kind of message, and in times of the plain proxy's, as GitHub's Markdown. */
export function messageTable(messages: MessageRounds): string {
  const names = [...new Set(Object.values(messages).flatMap((rounds) => Object.keys(rounds)))];
  const lines = Object.entries(messages).map(([kind, rounds]) => {
    const plainUs = median(rounds[PLAIN_PROXY.name] ?? []);
    const cells = names.map((name) => {
      const us = median(rounds[name] ?? []);
      return Number.isNaN(us) ? '–' : `${us} (${(us / plainUs).toFixed(2)})`;
    });
    return [kind, ...cells];
  });
  const table = [['CPU µs per request (× plain)', ...names], ['---', ...names.map(() => '--:')], ...lines];
  return table.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}
