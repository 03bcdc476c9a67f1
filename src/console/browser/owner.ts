import type { RefusedRequest } from '../../admin/fleet/refusals.ts';
import type { FleetChanges } from '../../admin/fleet/snapshot.ts';
import type { Usage } from '../../admin/usage/owner-usage.ts';
import type { Counts } from '../../observe/usage/counts.ts';
import { short, unseenText } from '../format.ts';
import { blockLines } from './actions/block-owner.ts';
import { AdminApiError, ask } from './api.ts';
import { bucketCard } from './bucket.ts';
import { marksOf } from './overview.ts';
import { accountTable, operationTable, recentTable } from './owner-tables.ts';
import { collapsed, refusalTable } from './refusal-list.ts';
import { Chart, type ChartMark } from './widgets/chart.ts';
import { byId, element, ownerLink, remark, setText } from './widgets/dom.ts';
import { Figures } from './widgets/figures.ts';
import type { ChartLine } from './widgets/plot.ts';

export interface OwnerView {
  showRefusals(refusals: readonly RefusedRequest[]): void;
  /** Marks the changes of the fleet in the chart. */
  showChanges(fleet: FleetChanges): void;
  /** Reads the usage again at once. */
  refresh(): void;
  close(): void;
}

/** Often enough to see a bucket fill and drain; each reading costs the store two peeks. */
const INTERVAL_MS = 500;

/** The owners that have a page. */
const NAMES = {
  account: { title: 'Account', plural: 'accounts' },
  organization: { title: 'Organization', plural: 'organizations' },
  person: { title: 'Person', plural: 'persons' },
  address: { title: 'Address', plural: 'addresses' },
};

export type OwnerScope = keyof typeof NAMES;

export function hasPage(scope: string): scope is OwnerScope {
  return Object.hasOwn(NAMES, scope);
}

/** Shows one Account, Organization or Person until it is closed. */
export function openOwner(scope: OwnerScope, id: string): OwnerView {
  const view = byId('owner');
  view.dataset.scope = scope;
  const page = pageOf(scope, id);
  view.replaceChildren(...page.nodes);
  const path = `usage/${NAMES[scope].plural}/${encodeURIComponent(id)}?wait=no`;
  const figures = new Figures(() => view.querySelectorAll<HTMLElement>('.panel'));
  const reading = poll(async () => {
    try {
      page.show((await ask(path)) as Usage);
      figures.measured();
    } catch (error) {
      if (error instanceof AdminApiError && error.status === 404) page.showUnknown();
      page.showProblem(error instanceof AdminApiError ? error.message : 'The gateway does not answer.');
    }
  });
  return {
    ...reading,
    showRefusals: page.showRefusals,
    showChanges: page.showChanges,
    close() {
      figures.close();
      reading.close();
    },
  };
}

/** What the page of an owner consists of. */
function pageOf(scope: OwnerScope, id: string) {
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const belongs = element('p', { class: 'muted' });
  const blocks = blockLines(scope, id);
  const panel = () => element('section', { class: 'panel' });
  const [recentPanel, operationPanel, accountPanel, refusalPanel] = [panel(), panel(), panel(), panel()];
  const accounts = accountTable(accountPanel);
  accountPanel.hidden = scope !== 'organization';
  const reported = remark('');
  const recent = recentTable(recentPanel, reported);
  const operations = operationTable(operationPanel);
  const refusals = refusalTable(refusalPanel, 'Last refusals', 'None that a replica remembers.');
  const buckets = bucketCards();
  const chart = new Chart('The last ten minutes', 'per second', short);
  let marks: readonly ChartMark[] = [];
  const showProblem = (text: string): void => {
    problem.hidden = text === '';
    setText(problem, text);
  };
  return {
    nodes: [
      element('a', { href: '#/', class: 'back' }, '← Fleet'),
      ...[headingOf(scope, id), belongs, problem, blocks.node, buckets.node, chart.node],
      element('div', { class: 'pair' }, recentPanel, accountPanel, operationPanel),
      refusalPanel,
    ],
    show(usage: Usage): void {
      showOrganization(belongs, usage);
      blocks.node.hidden = false;
      buckets.node.inert = !usage.isKnown;
      blocks.show(usage.blocks, usage.isKnown);
      buckets.show(usage.buckets);
      const reporting = reportedText(usage);
      const isWhole = usage.replicas === usage.ofReplicas;
      const lines = linesOf(usage);
      chart.mark(marks, {
        stepSeconds: STEP,
        endAgoSeconds: 0,
        partialSteps: isWhole ? 0 : Number(lines[0]?.values.length),
        partialText: reporting,
      });
      chart.show(lines);
      setText(reported, reporting);
      recent.show(Object.entries(usage.recent).map(([window, counts]) => ({ window, ...counts })));
      operations.show(usage.operations.slice(0, 10));
      accounts.show(usage.accounts ?? []);
      showProblem(problemOf(usage));
    },
    showChanges({ changes, second }: FleetChanges) {
      marks = marksOf(changes, second);
    },
    showRefusals: (values: readonly RefusedRequest[]) => refusals.show(collapsed(values)),
    showProblem,
    /** Nobody has this id, so there is nothing to act on. */
    showUnknown() {
      blocks.node.hidden = true;
    },
  };
}

function problemOf({ scope, storeProblem, isKnown }: Usage): string {
  if (storeProblem !== null) return `The store cannot be read (${storeProblem}).`;
  return isKnown ? '' : unseenText(scope);
}

/** Seconds of one value of a series. */
const STEP = 10;

/** The newest slice is being filled: it would look like a fall. */
function linesOf({ series }: Usage): readonly ChartLine[] {
  const rates = (name: keyof Counts) => series.slice(0, -1).map((counts) => counts[name] / STEP);
  return [
    { name: 'requests', style: 'requests', values: rates('requests'), isFilled: true },
    { name: 'refused', style: 'refused', values: rates('refused'), isFilled: true },
    { name: 'points', style: 'points', values: rates('points') },
  ];
}

/** A card for each bucket, made when it is first shown. */
function bucketCards() {
  const node = element('div', { class: 'buckets' });
  const shown = new Map<string, ReturnType<typeof bucketCard>>();
  return {
    node,
    show(buckets: Usage['buckets']): void {
      const present = new Set<string>();
      for (const bucket of buckets) {
        const key = `${bucket.bucket} ${bucket.owner} ${bucket.shadow}`;
        present.add(key);
        const card = shown.get(key) ?? bucketCard(bucket);
        if (!shown.has(key)) node.append(card.node);
        shown.set(key, card);
        card.update(bucket);
      }
      // A reload may have removed a limit, or moved an Account to another Organization.
      for (const [key, card] of shown) {
        if (present.has(key)) continue;
        card.node.remove();
        shown.delete(key);
      }
    },
  };
}

function headingOf(scope: OwnerScope, id: string): HTMLElement {
  const title = element('span', { class: 'muted' }, `${NAMES[scope].title} `);
  return element('h1', {}, title, element('span', { class: 'id' }, id));
}

/** Calls `read` again and again, unless the page is hidden. */
export function poll(read: () => Promise<void>) {
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

function showOrganization(target: HTMLElement, { scope, organization, plan }: Usage): void {
  const shown = `${organization} ${plan}`;
  if (target.dataset.shown === shown) return;
  target.dataset.shown = shown;
  const parts: (string | HTMLElement)[] = [];
  if (scope !== 'organization' && scope !== 'address') {
    if (organization === null) parts.push('Belongs to no Organization');
    else parts.push('Belongs to Organization ', ownerLink('organization', organization));
  }
  if (plan !== null) parts.push(`${parts.length === 0 ? 'Plan' : ' · Plan'} ${plan}`);
  target.replaceChildren(...parts);
}

/** Of how many replicas the sums are. */
function reportedText({ replicas, ofReplicas }: Usage): string {
  if (replicas === ofReplicas) return replicas === 1 ? '' : `at all ${replicas} replicas`;
  return ofReplicas === null ? 'at this replica alone' : `at ${replicas} of ${ofReplicas} replicas`;
}
