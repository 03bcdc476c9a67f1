import type { RefusedRequest } from '../../admin/fleet/refusals.ts';
import { shownCount } from '../../domain/shown.ts';
import { clock } from '../format.ts';
import { element, ownerLink, remark, shortId } from './widgets/dom.ts';
import { Table } from './widgets/table.ts';

/** Equal refusals: the newest, and how many there are. */
interface RefusedRequests extends RefusedRequest {
  readonly times: number;
}

/**
 * A table of refused requests, with their reasons.
 *
 * @param more stands beside the heading
 */
export function refusalTable(
  panel: HTMLElement,
  title: string,
  empty: string,
  more: readonly Node[] = [],
): Table<RefusedRequests> {
  const options: ConstructorParameters<typeof Table<RefusedRequests>>[2] = {
    columns: [
      { title: 'Last at', style: 'nowrap', text: ({ atMs }) => clock(atMs) },
      { title: 'Times', style: 'number', text: ({ times }) => shownCount(times) },
      {
        title: 'Account or address',
        style: 'account',
        cell: ({ account, address }) =>
          account === null ? ownerLink('address', String(address)) : ownerLink('account', account),
      },
      {
        title: 'Operation',
        style: 'wide',
        cell: ({ operation }) => (operation === '' ? remark('–') : shortId(operation)),
      },
      { title: 'Cost', style: 'number wide', text: ({ cost }) => shownCount(cost) },
      { title: 'Reason', cell: reasonOf },
      {
        title: 'Request',
        style: 'wide',
        cell: ({ requestId, status }) =>
          status === 429
            ? element(
                'a',
                { href: `#/find/${encodeURIComponent(requestId)}` },
                element('code', { class: 'id' }, requestId),
              )
            : element('code', { class: 'id' }, requestId),
      },
    ],
    empty,
    keyOf: ({ requestId, atMs, times }) => `${requestId} ${atMs} ${times}`,
  };
  return new Table<RefusedRequests>(panel, title, options, more);
}

const FEW = 8;

/** The newest of equal refusals, with their number, so that one caller cannot fill the list. */
export function collapsed(refusals: readonly RefusedRequest[]): readonly RefusedRequests[] {
  const groups = new Map<string, RefusedRequests>();
  for (const refusal of refusals) {
    const { account, address, operation, status, bucket, reason } = refusal;
    const key = JSON.stringify([account, address, operation, status, bucket ?? reason]);
    const known = groups.get(key) ?? { ...refusal, times: 0 };
    groups.set(key, { ...known, times: known.times + 1 });
  }
  return [...groups.values()];
}

/** The first few, for the overview. */
export function fewOfEach(refusals: readonly RefusedRequest[]): readonly RefusedRequests[] {
  return collapsed(refusals).slice(0, FEW);
}

/** The detail says when the request fits. */
function reasonOf({ status, bucket, reason, detail }: RefusedRequest): HTMLElement {
  return element(
    'span',
    { class: 'reason' },
    element('b', {}, `${status} ${bucket ?? reason}`),
    ' ',
    element('span', { class: 'muted' }, detail),
  );
}
