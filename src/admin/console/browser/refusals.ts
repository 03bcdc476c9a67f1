import type { RefusedRequest } from '../../fleet/refusals.ts';
import { element, ownerLink, shortId } from './widgets/dom.ts';
import { clock, count } from './widgets/format.ts';
import { Table } from './widgets/table.ts';

/** A table of refused requests, with their reasons. */
export function refusalTable(panel: HTMLElement, title: string, empty: string): Table<RefusedRequest> {
  return new Table<RefusedRequest>(panel, title, {
    columns: [
      { title: 'At', style: 'nowrap', text: ({ atMs }) => clock(atMs) },
      {
        title: 'Account or address',
        style: 'account',
        cell: ({ account, address }) =>
          account === null ? ownerLink('address', String(address)) : ownerLink('account', account),
      },
      {
        title: 'Operation',
        style: 'wide',
        cell: ({ operation }) => shortId(operation),
      },
      { title: 'Cost', style: 'number wide', text: ({ cost }) => count(cost) },
      { title: 'Reason', cell: reasonOf },
      {
        title: 'Request',
        style: 'wide',
        cell: ({ requestId }) => element('code', { class: 'id' }, requestId),
      },
    ],
    empty,
    keyOf: ({ requestId, atMs }) => `${requestId} ${atMs}`,
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

function reasonOf({ status, bucket, reason, detail, retryAfterSeconds }: RefusedRequest): HTMLElement {
  const wait = retryAfterSeconds === null ? '' : ` Fits after ${count(retryAfterSeconds)} s.`;
  return element(
    'span',
    { class: 'reason' },
    element('b', {}, `${status} ${bucket ?? reason}`),
    ' ',
    element('span', { class: 'muted' }, `${detail}${wait}`),
  );
}
