import type { ReplicaState } from '../../admin/fleet/snapshot.ts';
import { counted, shownCount } from '../../domain/shown.ts';
import { duration, milliseconds, percent, short } from '../format.ts';
import { isEnding, type Level } from './headline.ts';
import { commonLimits, shortVersion } from './overview.ts';
import { byId, element, icon, remark, unbroken } from './widgets/dom.ts';
import { sinceText } from './widgets/figures.ts';
import { type LiveCell, Table } from './widgets/table.ts';

let common = '';

/** From this difference on, the clock of a replica counts as wrong. */
const TOLERATED_CLOCK_MS = 1_000;

const STORE_STATES = { closed: 'up', 'half-open': 'is tried again', open: 'down' };

/** A cell with a mark that shows how good or bad its text is. */
function marked<T>(markOf: (value: T) => readonly [level: Level | undefined, text: string]) {
  return (): LiveCell<T> => {
    const node = element('span');
    return {
      node,
      update(value) {
        const [level, text] = markOf(value);
        const mark = `${level} ${text}`;
        if (node.dataset.mark === mark) return;
        node.dataset.mark = mark;
        node.replaceChildren(...(level === undefined ? [] : [icon(level)]), unbroken(text));
      },
    };
  };
}

const table = new Table<ReplicaState>(byId('replicas'), 'Replicas', {
  columns: [
    { title: 'Replica', cell: marked(nameOf) },
    {
      title: 'Address',
      style: 'wide',
      cell: ({ adminUrl }) => (adminUrl === null ? remark('–') : consoleLink(adminUrl)),
    },
    {
      title: 'Limits',
      cell: marked(({ limits }) => [limits === common ? undefined : 'warning', shortVersion(limits)]),
    },
    {
      title: 'Operations',
      style: 'wide',
      cell: marked(({ operations }) => [undefined, shortVersion(operations)]),
    },
    { title: 'Live limits', style: 'number wide', text: ({ liveLimits }) => shownCount(liveLimits) },
    { title: 'Store', style: 'wide', cell: marked(storeOf) },
    {
      title: 'Memory',
      style: 'number wide',
      text: ({ memoryBytes }) => (memoryBytes === null ? '–' : `${short(memoryBytes / 1_000_000)} MB`),
    },
    { title: 'Requests/s', style: 'number', text: ({ rates }) => short(rates.requestsPerSecond) },
    { title: 'Refused', style: 'number wide', text: ({ rates }) => percent(rates.refusedShare) },
    { title: 'Degraded', style: 'number wide', text: ({ rates }) => percent(rates.degradedShare) },
    { title: 'p99', style: 'number', text: ({ rates }) => milliseconds(rates.p99Ms) },
    {
      title: 'Up for',
      style: 'number wide',
      text: ({ startedAtMs }) => duration(Date.now() - startedAtMs),
    },
  ],
  empty: 'No replica has reported yet.',
  keyOf: ({ id }) => id,
  isUnknown: ({ unknownSinceMs }) => unknownSinceMs !== null,
});

/** Shows each replica, with what differs from the others marked. */
export function showReplicas(replicas: readonly ReplicaState[]): void {
  common = commonLimits(replicas);
  table.show(replicas);
}

/** Each replica has a console of its own. */
function consoleLink(adminUrl: string): HTMLElement {
  return element('a', { href: adminUrl, title: adminUrl }, adminUrl.replace(/^https?:\/\//, ''));
}

function nameOf(replica: ReplicaState): readonly [Level, string] {
  const { name, isReady, clockOffsetMs, unknownSinceMs } = replica;
  if (unknownSinceMs !== null) return ['warning', `${name} (${sinceText(unknownSinceMs)})`];
  const offsetMs = clockOffsetMs ?? 0;
  const isOff = Math.abs(offsetMs) > TOLERATED_CLOCK_MS;
  const clock = `clock ${offsetMs > 0 ? 'ahead' : 'behind'} by ${duration(Math.abs(offsetMs))}`;
  const notes = [...(isReady ? [] : ['not ready']), ...(isOff ? [clock] : []), ...certificateNotes(replica)];
  return notes.length === 0 ? ['good', name] : ['warning', `${name} (${notes.join(', ')})`];
}

/** Says when its certificate ends, if that is soon. */
function certificateNotes(replica: ReplicaState): readonly string[] {
  const { certificateEndsMs } = replica;
  if (certificateEndsMs === null || !isEnding(replica)) return [];
  const leftMs = certificateEndsMs - Date.now();
  return [leftMs < 0 ? 'certificate has expired' : `certificate ends in ${duration(leftMs)}`];
}

/** While the store is away, a replica enforces its part of every limit. */
function shownShare({ share }: ReplicaState['store']): string {
  if (share === null) return '';
  const age =
    share.ageSeconds === null ? 'never counted' : `counted ${duration(share.ageSeconds * 1_000)} ago`;
  return `: 1/${share.replicas} of each limit, for ${counted(share.replicas, 'replica')} ${age}`;
}

function storeOf({ store }: ReplicaState): readonly [Level, string] {
  const { breaker, kind, p99Ms, unsafeSettings, problem, unknownSinceMs } = store;
  if (unknownSinceMs !== null) return ['warning', `${kind} ${sinceText(unknownSinceMs)}`];
  if (problem !== null) return ['bad', `${kind} down (${problem})${shownShare(store)}`];
  const state = `${kind} ${STORE_STATES[breaker]}`;
  const level = unsafeSettings === 0 ? 'good' : 'warning';
  const text = p99Ms === null ? state : `${state}, ${milliseconds(p99Ms)}`;
  return [breaker === 'closed' ? level : 'bad', text];
}
