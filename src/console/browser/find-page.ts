import type { FindResult, Found } from '../../admin/find/finder.ts';
import type { ShownRefusal } from '../../admin/why/shown-refusal.ts';
import type { WhyAnswer } from '../../admin/why/why-route.ts';
import { shownCount, shownTime } from '../../domain/shown.ts';
import { AdminApiError, ask } from './api.ts';
import { hasPage, type OwnerView } from './owner.ts';
import { breakable, byId, element, ownerLink, remark, shortId } from './widgets/dom.ts';
import { Table } from './widgets/table.ts';

/** The page of what has an id. With one result that has a page of its own, that page is opened instead. */
export function openFind(q: string): OwnerView {
  const target = byId('owner');
  target.replaceChildren(headingOf(q), remark('Searching…'));
  let isClosed = false;
  const search = async () => {
    const nodes = await ask(`find?q=${encodeURIComponent(q)}`)
      .then(async (result) => {
        // One that is found late does not replace the page that is open by then.
        if (isClosed) return [];
        const { found } = result as FindResult;
        const isExplained = found.length > 0 && found.every((one) => one.isExplained === true);
        return isExplained ? refusalNodes(q) : shown(result as FindResult);
      })
      .catch((error) => [
        element(
          'p',
          { class: 'problem', role: 'alert' },
          error instanceof AdminApiError ? error.message : 'The gateway does not answer.',
        ),
      ]);
    if (!isClosed)
      target.replaceChildren(element('a', { href: '#/', class: 'back' }, '← Fleet'), headingOf(q), ...nodes);
  };
  void search();
  return {
    showRefusals() {},
    showChanges() {},
    refresh: () => void search(),
    close() {
      isClosed = true;
    },
  };
}

function headingOf(q: string): HTMLElement {
  return element('h1', {}, element('span', { class: 'id' }, q));
}

function shown({ found, nearest, mayExist }: FindResult): readonly HTMLElement[] {
  const [only, ...others] = found;
  const page = only && pageOf(only);
  if (only !== undefined && page !== undefined && others.length === 0) {
    location.replace(`#/${page}/${encodeURIComponent(only.id)}`);
    return [];
  }
  if (only !== undefined) return [listOf(found)];
  const may = mayExist
    ? ' This gateway cannot list all callers: an Account or principal that sent nothing in the last ten minutes may have it.'
    : '';
  return [
    element('p', { class: 'problem' }, `Unknown: nothing has this id.${may}`),
    ...(nearest.length === 0
      ? []
      : [element('h2', {}, 'Similar ids'), listOf(nearest.map((one) => ({ ...one, text: '' })))]),
  ];
}

/** The page that shows something; undefined if it has none. */
function pageOf({ kind, isPerson }: Pick<Found, 'kind' | 'isPerson'>): string | undefined {
  if (kind === 'principal') return isPerson ? 'person' : undefined;
  return hasPage(kind) ? kind : undefined;
}

function listOf(found: readonly (Pick<Found, 'kind' | 'id'> & Partial<Found>)[]): HTMLElement {
  const items = found.map((one) => {
    const { kind, id, text = '', owner } = one;
    const page = pageOf(one);
    const name = page === undefined ? linkOf(kind, id) : ownerLink(page, id);
    return element('li', {}, remark(`${kind} `), name, ...what(text, owner));
  });
  return element('ul', { class: 'found' }, ...items);
}

/** What a thing is. The owner at the end of the text is a link. */
function what(text: string, owner: Found['owner']): readonly HTMLElement[] {
  if (owner === undefined) return text === '' ? [] : [remark(` ${text}`)];
  return [remark(` ${text.slice(0, -owner.id.length)}`), ownerLink(owner.scope, owner.id)];
}

/** What the files set is on the page Operations. */
function linkOf(kind: Found['kind'], id: string): HTMLElement {
  const name = element('span', { class: 'id' }, id);
  if (kind !== 'operation' && kind !== 'limit' && kind !== 'plan') return name;
  return element(
    'a',
    { href: kind === 'operation' ? `#/operations/${encodeURIComponent(id)}` : '#/operations' },
    name,
  );
}

/** Why the requests with this id were refused. */
async function refusalNodes(requestId: string): Promise<readonly HTMLElement[]> {
  const { refusals } = (await ask(`refusals/${encodeURIComponent(requestId)}`)) as WhyAnswer;
  return refusals.flatMap(nodesOf);
}

function nodesOf(one: ShownRefusal): readonly HTMLElement[] {
  const { at, replica, account, address, principal, sharedText, text, limitText, unknownText } = one;
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
    ...[sharedText, text, limitText, unknownText].flatMap((line) =>
      line === null ? [] : [element('p', {}, line)],
    ),
    ...fillTable(one),
  ];
}

function fillTable({ filledBy, filledText, limit: { counts } }: ShownRefusal): readonly HTMLElement[] {
  if (filledBy.length === 0) return [];
  const panel = element('section', { class: 'panel' });
  const table = new Table<(typeof filledBy)[number]>(panel, filledText, {
    columns: [
      { title: 'Operation', cell: ({ operation }) => breakable('span', operation) },
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
