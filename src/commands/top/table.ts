import type { Ranked, Talker, Top } from '../../admin/top/talkers.ts';

export type Order = 'points' | 'refused';

const HEADINGS: Readonly<Record<Ranked, string>> = { accounts: 'Account', organizations: 'Organization' };
const MAX_ID_LENGTH = 40;

/** The rankings as text, at most `rows` of each. */
export function topTable(top: Top, order: Order, rows: number): readonly string[] {
  const replicas = `${top.replicas} ${top.replicas === 1 ? 'replica' : 'replicas'}`;
  return [
    `last ${top.window}, ${replicas}, by ${order}`,
    '',
    ...tableOf('accounts', top, order, rows),
    '',
    ...tableOf('organizations', top, order, rows),
  ];
}

function tableOf(ranked: Ranked, top: Top, order: Order, rows: number): readonly string[] {
  const talkers = (order === 'points' ? top[ranked].byPoints : top[ranked].byRefused).slice(0, rows);
  const head = `${HEADINGS[ranked].padEnd(MAX_ID_LENGTH)}${['points', 'requests', 'refused'].map(column).join('')}`;
  return talkers.length === 0 ? [head, 'none'] : [head, ...talkers.map(rowOf)];
}

function rowOf({ id, points, requests, refused, error }: Talker): string {
  const shown = printable(id);
  const name = shown.length < MAX_ID_LENGTH ? shown : `${shown.slice(0, MAX_ID_LENGTH - 4)}...`;
  const row = `${name.padEnd(MAX_ID_LENGTH)}${[points, requests, refused].map(column).join('')}`;
  return error === 0 ? row : `${row}  points may be overstated by ${error}`;
}

/** An id cannot move the cursor or change colours. */
function printable(id: string): string {
  return id.replaceAll(/[^\P{C}]/gu, '?');
}

function column(value: string | number): string {
  return String(value).padStart(12);
}
