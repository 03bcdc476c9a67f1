import type { ShownOperation, ShownPlan, ShownRow } from '../../admin/facts/shown-limits.ts';
import { exactDuration } from '../../domain/duration.ts';
import { shownCount } from '../../domain/shown.ts';
import { ask } from './api.ts';
import { breakable, byId, element, remark, setText } from './widgets/dom.ts';
import { Figures } from './widgets/figures.ts';
import { searchInput } from './widgets/inputs.ts';
import { Table } from './widgets/table.ts';

const ACCESS = { caller: 'any caller', person: 'Persons only', public: 'anybody' };

/** What the names, methods and paths of the operations that are shown have. */
const filter = searchInput('Filter operations');

const operations = new Table<ShownOperation>(
  byId('operation-list'),
  'Operations',
  {
    columns: [
      { title: 'Operation', cell: ({ id }) => breakable('span', id) },
      { title: 'Method', style: 'nowrap', text: ({ method }) => method },
      { title: 'Path', cell: ({ path }) => breakable('code', path) },
      { title: 'Points', style: 'number', text: ({ cost }) => shownCount(cost) },
      { title: 'Bucket', style: 'wide', text: ({ kind }) => kind },
      { title: 'Settlement', style: 'wide', text: ({ settlementText }) => settlementText ?? 'none' },
      { title: 'Who may call', style: 'wide', text: ({ access }) => ACCESS[access] },
    ],
    empty:
      'No listed operation matches. An operation that is not listed costs what operations.unlisted says.',
    keyOf: (operation) => JSON.stringify(operation),
  },
  [filter],
);
let listed: readonly ShownOperation[] = [];

/** Rows shown before somebody asks for all: the limits and plans are below them. */
const FEW = 20;

let areAllShown = false;
const more = element('button', { type: 'button', class: 'quiet more', hidden: true });
byId('operation-list').append(more);

function showFiltered(): void {
  const words = filter.value.toLowerCase().split(/\s+/);
  const textOf = ({ id, method, path }: ShownOperation) => `${id} ${method} ${path}`.toLowerCase();
  const matching = listed.filter((one) => words.every((word) => textOf(one).includes(word)));
  operations.show(areAllShown ? matching : matching.slice(0, FEW));
  more.hidden = matching.length <= FEW;
  setText(more, areAllShown ? `Show the first ${FEW}` : `Show all ${shownCount(matching.length)}`);
}

filter.addEventListener('input', showFiltered);
more.addEventListener('click', () => {
  areAllShown = !areAllShown;
  showFiltered();
});

/** Shows the operations that have these words in their name, method or path. */
export function filterOperations(words: string): void {
  filter.value = words;
  showFiltered();
}

const limits = new Table<ShownRow>(
  byId('limit-list'),
  'Limits',
  {
    columns: [
      { title: 'Limit', text: ({ bucket, shadow }) => (shadow ? `${bucket} (shadow)` : bucket) },
      { title: 'Per', text: ({ scope }) => scope },
      {
        title: 'At most',
        style: 'number',
        text: ({ limit, counts }) => (limit === null ? 'none' : `${shownCount(limit)} ${counts}`),
      },
      {
        title: 'In',
        style: 'number',
        text: ({ windowSeconds, period }) =>
          period?.unit ?? (windowSeconds === 0 ? '–' : exactDuration(windowSeconds)),
      },
      { title: 'Of', style: 'wide', cell: (row) => remark(selectionText(row)) },
    ],
    empty: '',
    keyOf: (row) => JSON.stringify(row),
  },
  [remark('for owners without a plan or a limit of their own')],
);

const plans = new Table<ShownPlan>(byId('plan-list'), 'Plans', {
  columns: [
    { title: 'Plan', text: ({ plan }) => plan },
    {
      title: 'Sets',
      cell: ({ limits: set }) => element('span', { class: 'text' }, set.map(limitText).join(', ')),
    },
  ],
  empty: 'There are no plans.',
  keyOf: (plan) => JSON.stringify(plan),
});

function limitText({ bucket, limit, shadow }: ShownPlan['limits'][number]): string {
  return `${bucket} ${limit === null ? 'none' : shownCount(limit)}${shadow ? ' (shadow)' : ''}`;
}

/** What a limit counts, where that is not everything. */
function selectionText({ kind, operations: named = [], tags = [] }: ShownRow): string {
  const tagged = tags.map((tag) => `tag ${tag}`);
  return [...(kind === undefined ? [] : [`${kind}s`]), ...named, ...tagged].join(', ') || 'all operations';
}

/** A deploy changes them, so they are read again after this time. */
const PERIOD_MS = 3_000;

const page = byId('operations');
const figures = new Figures(
  () => (page.hidden ? [] : page.querySelectorAll<HTMLElement>('.panel')),
  undefined,
  PERIOD_MS,
);

/** Reads and shows what operations cost, and what the files limit. */
async function showOperations(): Promise<void> {
  const [costed, rows, planned] = await Promise.all([ask('operations'), ask('limits'), ask('plans')]);
  listed = costed as readonly ShownOperation[];
  showFiltered();
  limits.show(rows as readonly ShownRow[]);
  plans.show(planned as readonly ShownPlan[]);
  figures.measured();
}

/** Shows them again and again while the page is open. */
export async function followOperations(): Promise<void> {
  if (!page.hidden && !document.hidden) await showOperations().catch(() => undefined);
  setTimeout(followOperations, page.hidden ? PERIOD_MS / 10 : PERIOD_MS);
}
