import type { FleetChange } from '../../fleet/merged-changes.ts';
import { byId, element } from './widgets/dom.ts';
import { clock, count } from './widgets/format.ts';
import { Table } from './widgets/table.ts';

const table = new Table<FleetChange>(byId('changes'), 'Changes', {
  columns: [
    { title: 'At', style: 'nowrap', text: ({ atMs }) => clock(atMs) },
    { title: 'What', style: 'nowrap', text: ({ name }) => name },
    { title: 'Difference', cell: ({ text }) => element('span', { class: 'text', title: text }, text) },
    { title: 'Replicas', style: 'number', text: ({ replicas }) => count(replicas) },
  ],
  empty: 'Nothing has changed since the replicas started.',
  keyOf: ({ atMs, name, text }) => `${atMs} ${name} ${text}`,
});

const FEW = 12;

/** Shows what was deployed, set, revoked and blocked lately. */
export function showChanges(changes: readonly FleetChange[]): void {
  table.show(changes.slice(0, FEW));
}
