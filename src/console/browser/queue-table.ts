import type { FleetSnapshot } from '../../admin/fleet/snapshot.ts';
import { shownCount } from '../../domain/shown.ts';
import type { PresentPayer, WaitingPayer } from '../../observe/gateway-observer.ts';
import { clock, duration } from '../format.ts';
import { byId, element, ownerLink } from './widgets/dom.ts';
import { Table } from './widgets/table.ts';

/** A payer with requests that wait for their turn at an upstream, in the queue of one replica. */
interface Waiting extends WaitingPayer {
  readonly prefix: string;
  readonly replica: string;
  readonly replicaId: string;
  readonly sinceMs: number;
  /** Who has the places. */
  readonly holders: readonly PresentPayer[];
  readonly places: number;
}

const table = new Table<Waiting>(byId('queues'), 'Waiting for their turn', {
  columns: [
    { title: 'Account or address', style: 'account', cell: payerLink },
    { title: 'Waiting', style: 'number', text: ({ waiting }) => shownCount(waiting) },
    { title: 'Longest', style: 'nowrap number', text: ({ longestMs }) => duration(longestMs) },
    { title: 'Since', style: 'nowrap wide', text: ({ sinceMs }) => clock(sinceMs) },
    { title: 'At the upstream', style: 'number', text: ({ present }) => shownCount(present) },
    { title: 'Upstream', style: 'wide', cell: ({ prefix }) => element('code', {}, prefix) },
    { title: 'Replica', style: 'wide', text: ({ replica }) => replica },
    { title: 'Most places', cell: holdersOf },
  ],
  empty: 'No request waits for its turn.',
  keyOf: ({ traffic, id, prefix, replicaId }) => JSON.stringify([traffic, id, prefix, replicaId]),
});

const ROWS = 10;

/** Shows whose requests wait for an upstream, the longest wait first, and who has the places there. */
export function showQueues({ replicas }: FleetSnapshot): void {
  const rows = replicas.flatMap(({ id: replicaId, name: replica, queues, takenAtMs, unknownSinceMs }) =>
    (unknownSinceMs === null ? queues : []).flatMap(({ prefix, waitingPayers, presentPayers, limit }) =>
      waitingPayers.map((payer) => ({
        ...payer,
        prefix,
        replica,
        replicaId,
        sinceMs: takenAtMs - payer.longestMs,
        holders: presentPayers,
        places: limit,
      })),
    ),
  );
  byId('queues').hidden = rows.length === 0;
  table.show(rows.sort((a, b) => b.longestMs - a.longestMs).slice(0, ROWS));
}

function payerLink({ traffic, id }: PresentPayer): HTMLElement {
  return ownerLink(traffic === 'caller' ? 'account' : 'address', id);
}

/** `acct_1 18, acct_2 1 of 20`. */
function holdersOf({ holders, places }: Waiting): HTMLElement {
  const parts = holders.slice(0, 3).flatMap((holder) => [payerLink(holder), ` ${holder.present}, `]);
  const last = parts.pop();
  return element(
    'span',
    {},
    ...parts,
    ...(last === undefined ? [] : [String(last).slice(0, -2)]),
    ` of ${places}`,
  );
}
