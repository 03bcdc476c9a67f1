import type { ReplicaState } from '../../fleet/snapshot.ts';
import { commonLimits, shortVersion } from './overview.ts';
import { byId, element, icon, setText } from './widgets/dom.ts';
import { count, duration, milliseconds, percent, short } from './widgets/format.ts';
import { type Row, Table } from './widgets/table.ts';

let common = '';

const table = new Table<ReplicaState>(byId('replicas'), [element('h2', {}, 'Replicas')], {
  label: 'Replicas',
  columns: [
    { title: 'Replica' },
    { title: 'Limits' },
    { title: 'Live limits', style: 'number wide' },
    { title: 'Store', style: 'wide' },
    { title: 'Requests/s', style: 'number' },
    { title: 'Refused', style: 'number wide' },
    { title: 'Degraded', style: 'number wide' },
    { title: 'p99', style: 'number' },
    { title: 'Up for', style: 'number wide' },
  ],
  empty: 'No replica has reported yet.',
  keyOf: ({ id }) => id,
  rowOf,
});

/** Shows each replica, with what differs from the others marked. */
export function showReplicas(replicas: readonly ReplicaState[]): void {
  common = commonLimits(replicas);
  table.show(replicas);
}

function rowOf(): Row<ReplicaState> {
  const span = () => element('span');
  const cells = {
    name: span(),
    limits: span(),
    live: span(),
    store: span(),
    requests: span(),
    refused: span(),
    degraded: span(),
    p99: span(),
    up: span(),
  };
  return {
    cells: Object.values(cells),
    update({ rates, ...replica }) {
      const { isReady, name, limits } = replica;
      marked(cells.name, isReady ? 'good' : 'warning', isReady ? name : `${name} (not ready)`);
      marked(cells.limits, limits === common ? undefined : 'warning', shortVersion(limits));
      setText(cells.live, count(replica.liveLimits));
      showStore(cells.store, replica.store);
      setText(cells.requests, short(rates.requestsPerSecond));
      setText(cells.refused, percent(rates.refusedShare));
      setText(cells.degraded, percent(rates.degradedShare));
      setText(cells.p99, milliseconds(rates.p99Ms));
      setText(cells.up, duration(Date.now() - replica.startedAtMs));
    },
  };
}

const STORE_STATES = { closed: 'up', 'half-open': 'is tried again', open: 'down' };

function showStore(
  target: HTMLElement,
  { breaker, kind, p99Ms, unsafeSettings }: ReplicaState['store'],
): void {
  const state = `${kind} ${STORE_STATES[breaker]}`;
  const level = unsafeSettings === 0 ? 'good' : 'warning';
  marked(
    target,
    breaker === 'closed' ? level : 'bad',
    p99Ms === null ? state : `${state}, ${milliseconds(p99Ms)}`,
  );
}

function marked(target: HTMLElement, level: 'good' | 'warning' | 'bad' | undefined, text: string): void {
  const mark = `${level} ${text}`;
  if (target.dataset.mark === mark) return;
  target.dataset.mark = mark;
  target.replaceChildren(...(level === undefined ? [] : [icon(level)]), text);
}
