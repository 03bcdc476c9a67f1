import type { ShownLimit } from '../../limits/live.ts';
import type { ShownRevocation } from '../../revocations/actions.ts';
import { ask } from './api.ts';
import { isLimitScope, revoke, undoRevocation, unsetLimit } from './limit-actions.ts';
import { byId, element, setText } from './widgets/dom.ts';
import { count, duration, moment } from './widgets/format.ts';
import { Table } from './widgets/table.ts';

const limits = new Table<ShownLimit>(byId('live-limits'), [element('h2', {}, 'Live limits')], {
  label: 'Live limits',
  columns: [
    { title: 'For' },
    { title: 'Points', style: 'number' },
    { title: 'Ends in', style: 'number' },
    { title: 'Why', style: 'wide' },
    { title: '', style: 'number' },
  ],
  empty: 'None: the files apply. Open an Account to set one.',
  keyOf: ({ scope, id, bucket, until }) => JSON.stringify([scope, id, bucket, until]),
  rowOf({ scope, id, bucket, limit, why, by }) {
    const left = element('span');
    const remove = element('button', { type: 'button', class: 'quiet' }, 'Remove');
    if (isLimitScope(scope)) remove.addEventListener('click', () => unsetLimit({ scope, id, bucket, limit }));
    const link = element('a', { class: 'id', href: `#/${scope}/${encodeURIComponent(id)}` }, id);
    return {
      cells: [
        element('span', {}, link, element('br'), element('small', { class: 'muted' }, bucket)),
        count(limit),
        left,
        element('span', {}, why, ' ', element('small', { class: 'muted' }, `by ${by}`)),
        remove,
      ],
      update: ({ until }) => setText(left, duration(Date.parse(until) - Date.now())),
    };
  },
});

const make = element('button', { type: 'button', class: 'quiet' }, 'Revoke…');
make.addEventListener('click', revoke);

const revocations = new Table<ShownRevocation>(
  byId('revocations'),
  [element('h2', {}, 'Revocations'), make],
  {
    label: 'Revocations',
    columns: [
      { title: 'Revoked' },
      { title: 'At' },
      { title: 'Why', style: 'wide' },
      { title: '', style: 'number' },
    ],
    empty: 'Nothing is revoked.',
    keyOf: ({ kind, target, at }) => JSON.stringify([kind, target, at]),
    rowOf(revocation) {
      const { kind, target, at, until, why, by } = revocation;
      const undo = element('button', { type: 'button', class: 'quiet' }, 'Undo');
      undo.addEventListener('click', () => undoRevocation(revocation));
      return {
        cells: [
          element(
            'span',
            {},
            element('span', { class: 'id' }, target),
            element('br'),
            element('small', { class: 'muted' }, kind),
          ),
          element('span', { class: 'nowrap', title: `remembered until ${moment(until)}` }, moment(at)),
          element(
            'span',
            {},
            why ?? '–',
            ' ',
            element('small', { class: 'muted' }, by === null ? '' : `by ${by}`),
          ),
          undo,
        ],
        update() {},
      };
    },
  },
);

/** Reads and shows the live limits and the revocations. */
export async function showLists(): Promise<void> {
  limits.show((await ask('limits/live')) as ShownLimit[]);
  revocations.show((await ask('revocations')) as ShownRevocation[]);
}
