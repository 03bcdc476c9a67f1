import { shownCount } from '../../domain/shown.ts';
import type { OperationCounts } from '../../observe/usage/activity.ts';
import type { Counts } from '../../observe/usage/counts.ts';
import type { Talker } from '../../observe/usage/extract.ts';
import { breakable, ownerLink, remark } from './widgets/dom.ts';
import { Table } from './widgets/table.ts';

const WINDOW_NAMES: Readonly<Record<string, string>> = {
  '10s': '10 seconds',
  '1m': 'minute',
  '10m': '10 minutes',
};

/** A column of numbers. */
function numbers(title: string, name: keyof Counts) {
  return { title, style: 'number', text: (counts: Counts) => shownCount(counts[name]) };
}

/** What an owner did in the last minutes. `reported` says which replicas that covers. */
export function recentTable(panel: HTMLElement, reported: Node) {
  const columns = [
    { title: 'In the last', text: ({ window }: { window: string }) => WINDOW_NAMES[window] ?? window },
    ...[numbers('Points', 'points'), numbers('Requests', 'requests'), numbers('Refused', 'refused')],
  ];
  return new Table<Counts & { window: string }>(
    panel,
    'Lately',
    { columns, empty: '', keyOf: ({ window }) => window },
    [reported],
  );
}

/** What the Accounts of an Organization spent. */
export function accountTable(panel: HTMLElement) {
  return new Table<Talker>(
    panel,
    'Accounts',
    {
      columns: [
        { title: 'Account', cell: ({ id }) => ownerLink('account', id) },
        numbers('Points', 'points'),
        numbers('Requests', 'requests'),
        numbers('Refused', 'refused'),
      ],
      empty: 'No requests lately.',
      keyOf: ({ id }) => id,
    },
    [remark('last 5 to 10 minutes')],
  );
}

/** The operations of an owner. */
export function operationTable(panel: HTMLElement) {
  const operations = {
    title: 'Operation',
    cell: ({ operation }: OperationCounts) => breakable('span', operation),
  };
  return new Table<OperationCounts>(
    panel,
    'Operations',
    {
      columns: [operations, numbers('Points', 'points'), numbers('Refused', 'refused')],
      empty: 'No requests lately.',
      keyOf: ({ operation }) => operation,
    },
    [remark('last 5 to 10 minutes')],
  );
}
