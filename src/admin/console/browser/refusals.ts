import type { RefusedRequest } from '../../fleet/refusals.ts';
import { element, setText } from './widgets/dom.ts';
import { clock, count } from './widgets/format.ts';
import { type Row, Table } from './widgets/table.ts';

/** A table of refused requests, with their reasons. */
export function refusalTable(panel: HTMLElement, title: string, empty: string): Table<RefusedRequest> {
  return new Table<RefusedRequest>(panel, [element('h2', {}, title)], {
    label: title,
    columns: [
      { title: 'At' },
      { title: 'Account or address', style: 'account' },
      { title: 'Operation', style: 'wide' },
      { title: 'Cost', style: 'number wide' },
      { title: 'Reason' },
      { title: 'Request', style: 'wide' },
    ],
    empty,
    keyOf: ({ requestId, atMs }) => `${requestId} ${atMs}`,
    rowOf,
  });
}

const FEW = 8;
const FEW_OF_ONE = 2;

/** The first of each Account and bucket: one that is refused all the time hides no other. */
export function fewOfEach(refusals: readonly RefusedRequest[]): readonly RefusedRequest[] {
  const counts = new Map<string, number>();
  const kept = refusals.filter(({ account, address, bucket, reason }) => {
    const key = `${account ?? address} ${bucket ?? reason}`;
    const before = counts.get(key) ?? 0;
    counts.set(key, before + 1);
    return before < FEW_OF_ONE;
  });
  return kept.slice(0, FEW);
}

function rowOf(refused: RefusedRequest): Row<RefusedRequest> {
  const { account, address, operation, requestId, cost, status, bucket, reason, detail, retryAfterSeconds } =
    refused;
  const [scope, payer] = account === null ? ['address', String(address)] : ['account', account];
  const at = element('time', { class: 'nowrap' });
  const wait = retryAfterSeconds === null ? '' : ` Fits after ${count(retryAfterSeconds)} s.`;
  return {
    cells: [
      at,
      element('a', { class: 'id', href: `#/${scope}/${encodeURIComponent(payer)}`, title: payer }, payer),
      element('span', { class: 'id', title: operation }, operation),
      count(cost),
      element(
        'span',
        { class: 'reason' },
        element('b', {}, `${status} ${bucket ?? reason}`),
        ' ',
        element('span', { class: 'muted' }, `${detail}${wait}`),
      ),
      element('code', { class: 'id' }, requestId),
    ],
    update: ({ atMs }) => setText(at, clock(atMs)),
  };
}
