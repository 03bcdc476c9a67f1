import type { ShownRefusal } from '../../admin/why/shown-refusal.ts';
import type { WhyAnswer } from '../../admin/why/why-route.ts';
import { shownCount, shownTime } from '../../domain/shown.ts';
import { ask } from './api.ts';
import { element, ownerLink, remark, shortId } from './widgets/dom.ts';
import { Table } from './widgets/table.ts';

/** Why the requests with this id were refused. */
export async function refusalNodes(requestId: string): Promise<readonly HTMLElement[]> {
  const { refusals } = (await ask(`refusals/${encodeURIComponent(requestId)}`)) as WhyAnswer;
  return refusals.flatMap(nodesOf);
}

function nodesOf(one: ShownRefusal): readonly HTMLElement[] {
  const { at, replica, account, address, principal, text, limitText, unknownText } = one;
  const caller = account === null ? ownerLink('address', String(address)) : ownerLink('account', account);
  const by = principal === null ? [] : [remark(' by '), shortId(principal)];
  return [
    element(
      'p',
      {},
      element('b', {}, '429'),
      remark(` at ${shownTime(at)} UTC, refused by ${replica}, to `),
      caller,
      ...by,
    ),
    element('p', {}, text),
    ...[limitText, unknownText].flatMap((line) => (line === null ? [] : [element('p', {}, line)])),
    ...fillTable(one),
  ];
}

function fillTable({ filledBy, filledText, limit: { counts } }: ShownRefusal): readonly HTMLElement[] {
  if (filledBy.length === 0) return [];
  const panel = element('section', { class: 'panel' });
  const table = new Table<(typeof filledBy)[number]>(panel, filledText, {
    columns: [
      { title: 'Operation', cell: ({ operation }) => shortId(operation) },
      { title: 'Principal', cell: ({ principal }) => shortId(principal ?? 'nobody') },
      { title: 'Requests', style: 'number', text: ({ requests }) => shownCount(requests) },
      ...(counts === 'points'
        ? [
            {
              title: 'Points',
              style: 'number',
              text: ({ points }: (typeof filledBy)[number]) => shownCount(points),
            },
          ]
        : []),
    ],
    empty: '',
    keyOf: ({ operation, principal }) => `${operation} ${principal}`,
  });
  table.show(filledBy);
  return [panel];
}
