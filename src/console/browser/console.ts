import type { RefusedRequest } from '../../admin/fleet/refusals.ts';
import type { FleetChanges, FleetSnapshot } from '../../admin/fleet/snapshot.ts';
import { backoffMs } from '../../domain/backoff.ts';
import { isRange, openRange } from './actions/block-range.ts';
import { askForToken, onAction, showNotice } from './actions/dialog.ts';
import { AdminApiError, OtherServerError, readEvents } from './api.ts';
import { openFind } from './find-page.ts';
import { partOf, showLost } from './headline.ts';
import { LISTS_MS, showLists } from './lists.ts';
import { filterOperations, followOperations } from './operation-tables.ts';
import { showOverview } from './overview.ts';
import { hasPage, type OwnerScope, type OwnerView, openOwner } from './owner.ts';
import { showQueues } from './queue-table.ts';

import { fewOfEach, refusalTable } from './refusal-list.ts';
import { showReplicas } from './replica-table.ts';
import { choices, rankedIds, showTalkers, startTalkers, type WindowName } from './talker-tables.ts';
import { byId, element, remark, setText, switchTheme } from './widgets/dom.ts';
import { Figures, sinceText } from './widgets/figures.ts';

/** Waits before a stream that failed is opened again. */
const RETRIES = { firstMs: 500, longestMs: 5_000 };

/** A stream that has sent nothing for this time is replaced, because its replica may have disappeared. */
const SILENCE_MS = 5_000;

/** The times that the charts cover. */
const RANGES = { '1m': '1 min', '10m': '10 min', '1h': '1 h' } as const;

interface ConsoleView {
  window: WindowName;
  range: keyof typeof RANGES;
  name: 'overview' | 'operations' | 'owner';
  owner: { readonly scope: OwnerScope; readonly id: string } | undefined;
  /** What is searched for. */
  q: string | undefined;
  page: OwnerView | undefined;
  /** Ends the stream, so that another is opened. */
  stream: AbortController;
}

const view: ConsoleView = {
  window: '10s',
  range: '1m',
  name: 'overview',
  owner: undefined,
  q: undefined,
  page: undefined,
  stream: new AbortController(),
};
const refusalsPart = remark('');
const refusals = refusalTable(byId('refusals'), 'Latest refusals', 'No request was refused lately.', [
  refusalsPart,
]);

/** What comes with the stream: all of the overview but its lists. */
const figures = new Figures(
  () => document.querySelectorAll<HTMLElement>('#overview .panel:not(#live-limits, #revocations, #changes)'),
  () => draw(),
);
/** Whether anything comes: the page of an owner gets changes without the state of the fleet. */
const connection = new Figures(
  () => [],
  (sinceMs) => {
    if (sinceMs !== null && hasReceived) showConnection('lost', sinceText(sinceMs));
    draw();
  },
);

/** Whether anything has come from the gateway yet. */
let hasReceived = false;
let newest: FleetSnapshot | undefined;
/** What answers instead of the gateway, if anything does. */
let otherServer: string | undefined;
let isDrawing = false;

/** Draws the newest state in the next frame, once, however many have come. A hidden page draws nothing. */
function draw(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    if (newest === undefined) return;
    if (view.name === 'overview' && isWorthShowing()) {
      byId('overview').hidden = false;
      showOverview(newest);
      const sinceMs = figures.unknownSinceMs;
      if (sinceMs !== null) showLost(sinceMs, newest.replicas, otherServer);
      showTalkers(newest);
      showReplicas(newest.replicas);
      showQueues(newest);
      refusals.show(fewOfEach(newest.refusals));
      setText(refusalsPart, partOf(newest) ?? '');
    }
    showIds();
  });
}

/** After the page of an owner the newest state may be old. While the gateway is connected, the present one is about to come. */
function isWorthShowing(): boolean {
  return newest !== undefined && (figures.unknownSinceMs === null || connection.unknownSinceMs !== null);
}

function showIds(): void {
  const ids = rankedIds();
  const list = byId('known-ids');
  if (list.dataset.ids === ids.join()) return;
  list.dataset.ids = ids.join();
  list.replaceChildren(...ids.map((value) => element('option', { value })));
}

function receive(name: string, data: unknown): void {
  showConnection('live', 'live');
  hasReceived = true;
  connection.measured();
  otherServer = undefined;
  if (name === 'refusals') view.page?.showRefusals(data as readonly RefusedRequest[]);
  if (name === 'changes') view.page?.showChanges(data as FleetChanges);
  if (name !== 'fleet') return;
  figures.measured();
  newest = data as FleetSnapshot;
  view.page?.showChanges(newest);
  draw();
}

function showConnection(state: 'live' | 'lost' | 'waiting', text: string): void {
  byId('connection').dataset.state = state;
  setText(byId('connection'), text);
}

/** Follows the fleet for as long as the page is open. */
async function follow(): Promise<void> {
  let failures = 0;
  for (;;) {
    view.stream = new AbortController();
    const { stream } = view;
    let silence = setTimeout(() => stream.abort(), SILENCE_MS);
    try {
      await readEvents(streamPath(view), stream.signal, (name, data) => {
        clearTimeout(silence);
        silence = setTimeout(() => stream.abort(), SILENCE_MS);
        failures = 0;
        receive(name, data);
      });
    } catch (error) {
      if (stream.signal.aborted) continue;
      if (error instanceof AdminApiError && error.status === 401) await askForToken(error.message);
      else await retryLater(error, backoffMs(RETRIES, ++failures));
    } finally {
      clearTimeout(silence);
    }
  }
}

/** The page of an owner shows only the changes of the fleet. */
function streamPath({ window, range, owner }: ConsoleView): string {
  const only = owner && { ...owner, only: 'changes' };
  return `fleet/events?${new URLSearchParams({ window, range, ...only })}`;
}

async function retryLater(error: unknown, waitMs: number): Promise<void> {
  showConnection('lost', error instanceof AdminApiError ? 'refused' : 'reconnecting');
  if (error instanceof AdminApiError) showNotice(error.message);
  showOtherServer(error instanceof OtherServerError ? error.message : undefined);
  await new Promise((resolve) => setTimeout(resolve, waitMs));
}

function showOtherServer(text: string | undefined): void {
  if (text === otherServer) return;
  otherServer = text;
  draw();
}

async function followLists(): Promise<void> {
  if (newest !== undefined && view.name === 'overview' && !document.hidden) await readLists(newest);
  setTimeout(followLists, newest === undefined ? LISTS_MS / 10 : LISTS_MS);
}

async function readLists({ replicas }: FleetSnapshot): Promise<void> {
  await showLists(replicas.some(({ store }) => store.kind !== 'memory')).catch(() => undefined);
}

/** What the address asks for. */
function asked(): Pick<ConsoleView, 'name' | 'owner' | 'q'> {
  const [, scope = '', id = ''] = /^#\/(\w+)\/(.+)$/.exec(location.hash) ?? [];
  if (hasPage(scope)) return { name: 'owner', owner: { scope, id: decoded(id) }, q: undefined };
  if (scope === 'find') return { name: 'owner', owner: undefined, q: decoded(id) };
  const isOperations = scope === 'operations' || location.hash === '#/operations';
  if (isOperations) filterOperations(decoded(id));
  return { name: isOperations ? 'operations' : 'overview', owner: undefined, q: undefined };
}

function route(): void {
  const { name, owner, q } = asked();
  const isOtherStream = owner !== undefined || view.owner !== undefined;
  view.page?.close();
  Object.assign(view, { name, owner, q });
  view.page = q === undefined ? owner && pageOf(owner) : openFind(q);
  showPage(name);
  const title = owner?.id ?? q;
  document.title = title === undefined ? 'Weir' : `${title} · Weir`;
  if (isOtherStream) view.stream.abort();
  draw();
}

function pageOf({ scope, id }: NonNullable<ConsoleView['owner']>): OwnerView {
  return scope === 'address' && isRange(id) ? openRange(id) : openOwner(scope, id);
}

function showPage(name: ConsoleView['name']): void {
  for (const one of ['owner', 'operations'] as const) byId(one).hidden = one !== name;
  byId('overview').hidden = name !== 'overview' || !isWorthShowing();
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a')) {
    const isHere = link.hash === { overview: '#/', operations: '#/operations', owner: '' }[name];
    link.setAttribute('aria-current', isHere ? 'page' : 'false');
  }
  // The headline links to a panel of the overview.
  const panel = document.querySelector(/^#\w[\w-]*$/.exec(location.hash)?.[0] ?? 'none');
  if (panel === null) scrollTo(0, 0);
  else panel.scrollIntoView({ block: 'center' });
}

/** The id in the address; one that somebody typed may not be encoded. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

function startSearch(): void {
  const input = byId('search-id') as HTMLInputElement;
  byId('search').addEventListener('submit', (event) => {
    event.preventDefault();
    const id = input.value.trim();
    if (id !== '') location.hash = `#/find/${encodeURIComponent(id)}`;
    input.blur();
  });
  addEventListener('keydown', (event) => {
    // While a dialog's action is carried out, the page has the focus.
    const isTyping =
      document.querySelector('dialog[open]') !== null ||
      (event.target instanceof HTMLElement && event.target.matches('input, select'));
    if (event.key === '/' && !isTyping) {
      event.preventDefault();
      input.focus();
      input.select();
    }
    if (event.key === 'Escape' && !isTyping && view.name !== 'overview') location.hash = '#/';
  });
}

function startTheme(): void {
  const kept = localStorage.getItem('weir-theme');
  if (kept !== null) document.documentElement.dataset.theme = kept;
  byId('theme').addEventListener('click', () => localStorage.setItem('weir-theme', switchTheme()));
}

startTheme();
startSearch();
startTalkers((window) => {
  view.window = window;
  view.stream.abort();
});
choices('range', RANGES, view.range, (range) => {
  view.range = range;
  view.stream.abort();
});
onAction(() => {
  view.page?.refresh();
  if (newest !== undefined) void readLists(newest);
});
addEventListener('hashchange', route);
route();
void follow();
void followLists();
void followOperations();
