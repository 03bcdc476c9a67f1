import type { ShownBlock } from '../../admin/facts/block-api.ts';
import type { ShownLimit } from '../../admin/facts/live-limit-api.ts';
import type { ShownRevocation } from '../../admin/facts/revocation-api.ts';
import { SHARED_PERIOD_MS } from '../../admin/freshness.ts';
import type { ShownChange } from '../../admin/history/change.ts';
import { shownCount } from '../../domain/shown.ts';
import { duration, moment } from '../format.ts';
import { unblock } from './actions/block-owner.ts';
import { revoke, undoRevocation } from './actions/revoke-token.ts';
import { unsetLimit } from './actions/set-limit.ts';
import { ask, askAged } from './api.ts';
import { hasPage } from './owner.ts';
import { byId, element, ownerLink, quietButton, remark, setText } from './widgets/dom.ts';
import { Figures } from './widgets/figures.ts';
import { type LiveCell, Table } from './widgets/table.ts';

function reason(why: string | null, by: string | null): HTMLElement {
  return element('span', {}, why ?? '–', ' ', remark(by === null ? '' : `by ${by}`));
}

/** A principal has no page of its own: it may be no Person. */
function nameOf({ scope, id }: Pick<ShownBlock | ShownLimit, 'scope' | 'id'>): HTMLElement {
  return hasPage(scope) ? ownerLink(scope, id) : element('span', { class: 'id' }, id);
}

function isBlock(shown: ShownLimit | ShownBlock): shown is ShownBlock {
  return shown.bucket === 'blocked';
}

const limits = new Table<ShownLimit | ShownBlock>(byId('live-limits'), 'Live limits and blocks', {
  columns: [
    {
      title: 'For',
      cell: ({ scope, id, bucket }) =>
        element('span', {}, nameOf({ scope, id }), element('br'), remark(bucket)),
    },
    { title: 'Limit', style: 'number', text: ({ limit }) => shownCount(limit) },
    {
      title: 'Ends in',
      style: 'number',
      text: ({ until }) => duration(Date.parse(until) - Date.now()),
    },
    { title: 'Why', style: 'wide', cell: ({ why, by }) => reason(why, by) },
    {
      title: 'Action',
      style: 'number',
      cell: (limit) =>
        isBlock(limit)
          ? quietButton('Unblock', () => unblock(limit))
          : quietButton('Remove', () => {
              const { scope, id, bucket, limit: number, counts = 'points' } = limit;
              unsetLimit({ scope, id, bucket, limit: number, counts });
            }),
    },
  ],
  empty: 'None: the files apply. Open an Account to set a limit or to block it.',
  keyOf: ({ scope, id, bucket, until }) => JSON.stringify([scope, id, bucket, until]),
});

/** The client that tries a revoked token has it. */
function triedCell(): LiveCell<ShownRevocation> {
  const node = element('span');
  return {
    node,
    update({ lastTried }) {
      const { at = '', from } = lastTried ?? {};
      setText(
        node,
        lastTried === null ? 'never' : `${duration(Date.now() - Date.parse(at))} ago from ${from}`,
      );
      node.title = at;
      node.className = lastTried === null ? 'muted' : 'refused';
    },
  };
}

const revocations = new Table<ShownRevocation>(
  byId('revocations'),
  'Revocations',
  {
    columns: [
      {
        title: 'Revoked',
        cell: ({ kind, target }) =>
          element('span', {}, element('span', { class: 'id' }, target), element('br'), remark(kind)),
      },
      {
        title: 'At',
        cell: ({ at, until }) =>
          element('span', { class: 'nowrap', title: `remembered until ${moment(until)}` }, moment(at)),
      },
      { title: 'Last tried', cell: triedCell },
      { title: 'Why', style: 'wide', cell: ({ why, by }) => reason(why, by) },
      {
        title: 'Action',
        style: 'number',
        cell: (revocation) => quietButton('Undo', () => undoRevocation(revocation)),
      },
    ],
    empty: 'Nothing is revoked.',
    keyOf: ({ kind, target, at }) => JSON.stringify([kind, target, at]),
  },
  [quietButton('Revoke…', revoke)],
);

/** What `weir changes` prints. */
const changes = new Table<ShownChange>(
  byId('changes'),
  'Changes',
  {
    columns: [
      { title: 'At', style: 'nowrap', text: ({ at }) => moment(at) },
      { title: 'What', style: 'nowrap', text: ({ kind }) => kind },
      {
        title: 'Difference',
        cell: ({ subject, text }) => {
          const whole = subject === null ? text : `${subject}: ${text}`;
          return element('span', { class: 'text', title: whole }, whole);
        },
      },
      { title: 'Why', style: 'wide', cell: ({ why, by }) => reason(why, by) },
      { title: 'Replica', style: 'wide', text: ({ replica }) => replica ?? 'all' },
    ],
    empty: 'Nothing has changed in the last 24 hours.',
    keyOf: ({ at, kind, subject, text, replica }) => `${at} ${kind} ${subject} ${text} ${replica}`,
  },
  [remark('in the last 24 hours')],
);

/** The newest changes that are shown. `weir changes` prints all. */
const FEW = 12;

/** Other operators act as well: the lists are read again after this time. */
export const LISTS_MS = 3_000;

const figures = {
  changes: new Figures(() => [byId('changes')], undefined, SHARED_PERIOD_MS),
  limits: new Figures(() => [byId('live-limits')], undefined, SHARED_PERIOD_MS),
  revocations: new Figures(() => [byId('revocations')], undefined, SHARED_PERIOD_MS),
};

/**
 * Reads and shows the live limits, the revocations and what changed.
 *
 * @param hasRevocations false with the memory store, which has none
 */
export async function showLists(hasRevocations: boolean): Promise<void> {
  byId('revocations').hidden = !hasRevocations;
  const live = await askAged<readonly (ShownLimit | ShownBlock)[]>('limits/live');
  limits.show(live.value);
  figures.limits.measured(live.ageMs);
  await showChanges().catch(() => undefined);
  if (!hasRevocations) return;
  const revoked = await askAged<readonly ShownRevocation[]>('revocations');
  revocations.show(revoked.value);
  figures.revocations.measured(revoked.ageMs);
}

async function showChanges(): Promise<void> {
  const all = (await ask('changes?since=24h')) as readonly ShownChange[];
  changes.show(all.slice(0, FEW));
  figures.changes.measured();
}
