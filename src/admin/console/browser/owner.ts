import type { OperationCounts } from '../../../observe/usage/activity.ts';
import type { RefusedRequest } from '../../fleet/refusals.ts';
import type { Usage } from '../../usage/usage.ts';
import { ApiError, ask } from './api.ts';
import { blockLines } from './block-actions.ts';
import { bucketCard } from './bucket.ts';
import { refusalTable } from './refusals.ts';
import { byId, element, ownerLink, remark, setText } from './widgets/dom.ts';
import { Figures } from './widgets/figures.ts';
import { count } from './widgets/format.ts';
import { Table } from './widgets/table.ts';

export type Scope = Usage['scope'];

export interface OwnerView {
  showRefusals(refusals: readonly RefusedRequest[]): void;
  /** Reads the usage again at once. */
  refresh(): void;
  close(): void;
}

/** Often enough to see a bucket fill and drain; each reading costs the store two peeks. */
const INTERVAL_MS = 500;

const NAMES: Readonly<Record<Scope, { readonly title: string; readonly plural: string }>> = {
  account: { title: 'Account', plural: 'accounts' },
  organization: { title: 'Organization', plural: 'organizations' },
  person: { title: 'Person', plural: 'persons' },
  address: { title: 'Address', plural: 'addresses' },
};

/** Shows one Account, Organization or Person until it is closed. */
export function openOwner(scope: Scope, id: string): OwnerView {
  const view = byId('owner');
  view.dataset.scope = scope;
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const belongs = element('p', { class: 'muted' });
  const blocks = blockLines(scope, id);
  const cards = element('div', { class: 'buckets' });
  const panel = () => element('section', { class: 'panel' });
  const [recent, operations, refusals] = [panel(), panel(), panel()];
  view.replaceChildren(
    element('a', { href: '#/', class: 'back' }, '← Fleet'),
    headingOf(scope, id),
    belongs,
    problem,
    blocks.node,
    cards,
    element('div', { class: 'pair' }, recent, operations),
    refusals,
  );
  const parts = {
    recent: recentTable(recent),
    operations: operationTable(operations),
    refusals: refusalTable(refusals, 'Last refusals', 'None that a replica remembers.'),
  };
  const shown = new Map<string, ReturnType<typeof bucketCard>>();
  const show = (usage: Usage): void => {
    showOrganization(belongs, usage);
    blocks.show(usage.blocks);
    for (const bucket of usage.buckets) {
      const key = `${bucket.bucket} ${bucket.owner} ${bucket.shadow}`;
      const card = shown.get(key) ?? bucketCard(bucket);
      if (!shown.has(key)) cards.append(card.node);
      shown.set(key, card);
      card.update(bucket);
    }
    parts.recent.show(Object.entries(usage.recent).map(([window, counts]) => ({ window, ...counts })));
    parts.operations.show(usage.operations.slice(0, 10));
    const text = usage.storeProblem === null ? '' : `The store cannot be read (${usage.storeProblem}).`;
    showProblem(problem, text);
  };
  const path = `usage/${NAMES[scope].plural}/${encodeURIComponent(id)}`;
  const figures = new Figures(() => view.querySelectorAll<HTMLElement>('.panel'));
  const reading = poll(async () => {
    try {
      show((await ask(path)) as Usage);
      figures.measured();
    } catch (error) {
      showProblem(problem, error instanceof ApiError ? error.message : 'The gateway does not answer.');
    }
  });
  return {
    ...reading,
    showRefusals: (values) => parts.refusals.show(values),
    close() {
      figures.close();
      reading.close();
    },
  };
}

function headingOf(scope: Scope, id: string): HTMLElement {
  const title = element('span', { class: 'muted' }, `${NAMES[scope].title} `);
  return element('h1', {}, title, element('span', { class: 'id' }, id));
}

/** Calls `read` again and again, unless the page is hidden. */
function poll(read: () => Promise<void>) {
  let timer: number | undefined;
  let isClosed = false;
  const turn = async () => {
    clearTimeout(timer);
    if (!document.hidden) await read();
    clearTimeout(timer);
    if (!isClosed) timer = window.setTimeout(turn, INTERVAL_MS);
  };
  void turn();
  return {
    refresh: () => void turn(),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function showProblem(target: HTMLElement, text: string): void {
  target.hidden = text === '';
  setText(target, text);
}

function showOrganization(target: HTMLElement, { scope, organization }: Usage): void {
  if (target.dataset.organization === String(organization)) return;
  target.dataset.organization = String(organization);
  if (scope === 'organization' || scope === 'address') target.replaceChildren();
  else if (organization === null) target.replaceChildren('Belongs to no Organization');
  else {
    target.replaceChildren('Belongs to Organization ', ownerLink('organization', organization));
  }
}

const WINDOW_NAMES: Readonly<Record<string, string>> = {
  '10s': '10 seconds',
  '1m': 'minute',
  '10m': '10 minutes',
};

interface Counts {
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
}

/** A column of numbers. */
function numbers(title: string, name: keyof Counts) {
  return { title, style: 'number', text: (counts: Counts) => count(counts[name]) };
}

function recentTable(panel: HTMLElement) {
  const columns = [
    { title: 'In the last', text: ({ window }: { window: string }) => WINDOW_NAMES[window] ?? window },
    ...[numbers('Points', 'points'), numbers('Requests', 'requests'), numbers('Refused', 'refused')],
  ];
  return new Table<Counts & { window: string }>(
    panel,
    'Lately',
    { columns, empty: '', keyOf: ({ window }) => window },
    [remark('at the replica that answers')],
  );
}

function operationTable(panel: HTMLElement) {
  const operations = {
    title: 'Operation',
    cell: ({ operation }: OperationCounts) => element('span', { class: 'id' }, operation),
  };
  return new Table<OperationCounts>(
    panel,
    'Operations',
    {
      columns: [operations, numbers('Points', 'points'), numbers('Refused', 'refused')],
      empty: 'No requests lately.',
      keyOf: ({ operation }) => operation,
    },
    [remark('last 5 to 10 minutes')],
  );
}
