import { shownCount, shownShare } from '../../../domain/shown.ts';
import type { ReportBucket } from '../../report/report.ts';
import { byId, element } from '../widgets/dom.ts';

const ROWS_AT_ONCE = 50;

interface BucketColumn {
  readonly name: string;
  /** What the column is sorted by. */
  value(bucket: ReportBucket): number | string;
  cell(bucket: ReportBucket): Node | string | readonly (Node | string)[];
  /** Classes of the style sheet. */
  readonly style?: string;
  isZero?(bucket: ReportBucket): boolean;
}

const COLUMNS: readonly BucketColumn[] = [
  { name: 'Bucket', value: ({ id }) => id, cell: idCell, style: 'word id' },
  {
    name: 'Limit',
    value: ({ limit }) => limit ?? Number.POSITIVE_INFINITY,
    cell: ({ limit }) => (limit === null ? 'none' : shownCount(limit)),
  },
  {
    name: 'Requests',
    value: ({ requests }) => requests,
    cell: ({ requests }) => shownCount(requests),
    style: 'medium',
  },
  {
    name: 'Before',
    value: ({ refusedBefore }) => refusedBefore,
    cell: (bucket) => shownCount(bucket.refusedBefore),
    isZero: (bucket) => bucket.refusedBefore === 0,
  },
  {
    name: 'After',
    value: ({ refusedAfter }) => refusedAfter,
    cell: (bucket) => shownCount(bucket.refusedAfter),
    isZero: (bucket) => bucket.refusedAfter === 0,
  },
  {
    name: 'Share after',
    value: ({ shareRefused }) => shareRefused.after,
    cell: shareCell,
    isZero: (bucket) => bucket.refusedAfter === 0,
  },
  {
    name: 'Fullest',
    value: ({ fullestWindow }) => fullestWindow,
    cell: (bucket) => shownCount(bucket.fullestWindow),
    style: 'medium',
  },
  {
    name: 'p50',
    value: ({ windows }) => windows.p50,
    cell: ({ windows }) => shownCount(windows.p50),
    style: 'wide',
  },
  {
    name: 'p99',
    value: ({ windows }) => windows.p99,
    cell: ({ windows }) => shownCount(windows.p99),
    style: 'wide',
  },
  {
    name: 'p99.9',
    value: ({ windows }) => windows['p99.9'],
    cell: ({ windows }) => shownCount(windows['p99.9']),
    style: 'wide',
  },
];

function idCell({ id, bucket }: ReportBucket) {
  return [id, element('small', {}, bucket)];
}

function shareCell({ shareRefused }: ReportBucket) {
  const fill = element('i');
  fill.style.width = `${Math.min(100, shareRefused.after * 100)}%`;
  const meter = element('span', { class: 'meter', 'aria-hidden': 'true' }, fill);
  return [shownShare(shareRefused.after), meter];
}

/** What of the table is shown. */
interface TableState {
  search: string;
  /** The name of the only buckets that are shown; empty for all. */
  kind: string;
  sort: BucketColumn | undefined;
  isAscending: boolean;
  rows: number;
  selected: ReportBucket | undefined;
}

type Select = (bucket: ReportBucket) => void;

/**
 * The searchable table of buckets.
 *
 * @param onSelect gets the bucket that was chosen
 */
export function bucketTable(buckets: readonly ReportBucket[], leftOut: number, onSelect: Select): void {
  const state: TableState = {
    search: '',
    kind: '',
    sort: undefined,
    isAscending: false,
    rows: ROWS_AT_ONCE,
    selected: buckets[0],
  };
  const render = () => renderTable(buckets, leftOut, state, select);
  const select = (bucket: ReportBucket) => {
    state.selected = bucket;
    render();
    onSelect(bucket);
  };
  const names = [...new Set(buckets.map(({ bucket }) => bucket))].sort();
  byId('kind').append(...names.map((name) => element('option', { value: name }, name)));
  for (const key of ['search', 'kind'] as const) {
    const control = byId(key) as HTMLInputElement | HTMLSelectElement;
    control.addEventListener('input', () => {
      state[key] = control.value.trim().toLowerCase();
      state.rows = ROWS_AT_ONCE;
      render();
    });
  }
  byId('more').addEventListener('click', () => {
    state.rows += ROWS_AT_ONCE * 4;
    render();
  });
  tablePart('thead').append(headRow(state, render));
  render();
}

function tablePart(name: 'thead' | 'tbody'): HTMLTableSectionElement {
  const found = byId('buckets').querySelector(name);
  if (found === null) throw new TypeError(`the table has no ${name}`);
  return found;
}

function headRow(state: TableState, render: () => void): HTMLElement {
  return element(
    'tr',
    {},
    ...COLUMNS.map((column) => {
      const button = element('button', { type: 'button' }, column.name);
      button.addEventListener('click', () => {
        state.isAscending = state.sort === column ? !state.isAscending : column.name === 'Bucket';
        state.sort = column;
        render();
      });
      return element('th', { scope: 'col', class: column.style ?? '' }, button);
    }),
  );
}

function renderTable(
  buckets: readonly ReportBucket[],
  leftOut: number,
  state: TableState,
  select: Select,
): void {
  const { search, kind, sort, isAscending, rows, selected } = state;
  const found = buckets.filter(
    ({ id, bucket }) => id.toLowerCase().includes(search) && (kind === '' || bucket === kind),
  );
  if (sort !== undefined) {
    const order = isAscending ? 1 : -1;
    found.sort((one, other) => (sort.value(one) < sort.value(other) ? -order : order));
  }
  for (const [index, head] of tablePart('thead').querySelectorAll('th').entries()) {
    if (COLUMNS[index] === sort) head.setAttribute('aria-sort', isAscending ? 'ascending' : 'descending');
    else head.removeAttribute('aria-sort');
  }
  tablePart('tbody').replaceChildren(
    ...found.slice(0, rows).map((one) => bucketRow(one, one === selected, select)),
  );
  const rest = found.length - rows;
  byId('more').hidden = rest <= 0;
  byId('more').textContent = `Show more of ${shownCount(found.length)}`;
  byId('none').hidden = found.length > 0;
  byId('count').textContent =
    `${shownCount(found.length)}${leftOut > 0 ? ` of ${shownCount(buckets.length + leftOut)}; the least affected are left out` : ''}`;
}

function bucketRow(bucket: ReportBucket, isSelected: boolean, select: Select): HTMLElement {
  const cells = COLUMNS.map(({ cell, style = '', isZero }) =>
    element('td', { class: isZero?.(bucket) ? `${style} zero` : style }, ...[cell(bucket)].flat()),
  );
  const row = element('tr', { tabindex: '0', 'aria-selected': String(isSelected) }, ...cells);
  row.addEventListener('click', () => select(bucket));
  row.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') select(bucket);
  });
  return row;
}
