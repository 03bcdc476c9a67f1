import type { RefusedRequest } from '../../fleet/refusals.ts';
import type { FleetSnapshot } from '../../fleet/snapshot.ts';
import { askForToken, onAction, showNotice } from './actions.ts';
import { ApiError, readEvents } from './api.ts';
import { showChanges } from './changes.ts';
import { LISTS_MS, showLists } from './lists.ts';
import { showLost, showOverview } from './overview.ts';
import { type OwnerView, openOwner, type Scope } from './owner.ts';
import { fewOfEach, refusalTable } from './refusals.ts';
import { showReplicas } from './replicas.ts';
import { rankedIds, showTalkers, startTalkers, type WindowName } from './talkers.ts';
import { byId, element, setText, switchTheme } from './widgets/dom.ts';
import { Figures, sinceText } from './widgets/figures.ts';

const SCOPES: readonly Scope[] = ['account', 'organization', 'person', 'address'];

/** How long a stream that ended or failed is left alone. */
const RETRY_MS = 1_000;

/** A stream that has sent nothing for so long is replaced: its replica may have disappeared without a word. */
const SILENCE_MS = 5_000;

interface View {
  window: WindowName;
  owner: { readonly scope: Scope; readonly id: string } | undefined;
  page: OwnerView | undefined;
  /** Ends the stream, so that another is opened. */
  stream: AbortController;
}

const view: View = { window: '10s', owner: undefined, page: undefined, stream: new AbortController() };
const refusals = refusalTable(byId('refusals'), 'Latest refusals', 'No request was refused lately.');

/** What comes with the stream: all of the overview but its lists. */
const figures = new Figures(
  () => document.querySelectorAll<HTMLElement>('#overview .panel:not(#live-limits, #revocations)'),
  (sinceMs) => {
    if (sinceMs === null) return;
    showConnection('lost', sinceText(sinceMs));
    showLost(sinceMs);
  },
);

let newest: FleetSnapshot | undefined;
let isDrawing = false;

/** Draws the newest state in the next frame, once, however many have come. A hidden page draws nothing. */
function draw(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    if (newest === undefined) return;
    if (view.owner === undefined) {
      byId('overview').hidden = false;
      showOverview(newest);
      showTalkers(newest);
      showReplicas(newest.replicas);
      showChanges(newest.changes);
      refusals.show(fewOfEach(newest.refusals));
    }
    showIds();
  });
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
  figures.measured();
  if (name === 'refusals') view.page?.showRefusals(data as readonly RefusedRequest[]);
  if (name !== 'fleet') return;
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
  for (;;) {
    view.stream = new AbortController();
    const { stream } = view;
    let silence = setTimeout(() => stream.abort(), SILENCE_MS);
    const query = new URLSearchParams({ window: view.window, ...view.owner });
    try {
      await readEvents(`fleet/events?${query}`, stream.signal, (name, data) => {
        clearTimeout(silence);
        silence = setTimeout(() => stream.abort(), SILENCE_MS);
        receive(name, data);
      });
    } catch (error) {
      if (stream.signal.aborted) continue;
      if (error instanceof ApiError && error.status === 401) await askForToken(error.message);
      else await retryLater(error);
    } finally {
      clearTimeout(silence);
    }
  }
}

async function retryLater(error: unknown): Promise<void> {
  showConnection('lost', error instanceof ApiError ? 'refused' : 'reconnecting');
  if (error instanceof ApiError) showNotice(error.message);
  await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
}

async function followLists(): Promise<void> {
  if (newest !== undefined && view.owner === undefined && !document.hidden)
    await showLists().catch(() => undefined);
  setTimeout(followLists, newest === undefined ? LISTS_MS / 10 : LISTS_MS);
}

function route(): void {
  const [, scope = '', id = ''] = /^#\/(\w+)\/(.+)$/.exec(location.hash) ?? [];
  const known = SCOPES.find((one) => one === scope);
  view.page?.close();
  view.owner = known === undefined ? undefined : { scope: known, id: decoded(id) };
  view.page = view.owner && openOwner(view.owner.scope, view.owner.id);
  byId('owner').hidden = view.owner === undefined;
  byId('overview').hidden = view.owner !== undefined || newest === undefined;
  document.title = view.owner === undefined ? 'Weir' : `${view.owner.id} · Weir`;
  scrollTo(0, 0);
  view.stream.abort();
  draw();
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
    const scope = (byId('search-scope') as HTMLSelectElement).value;
    const id = input.value.trim();
    if (id !== '') location.hash = `#/${scope}/${encodeURIComponent(id)}`;
    input.blur();
  });
  addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select, dialog *');
    if (event.key === '/' && !isTyping) {
      event.preventDefault();
      input.focus();
    }
    if (event.key === 'Escape' && !isTyping && view.owner !== undefined) location.hash = '#/';
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
onAction(() => {
  view.page?.refresh();
  void showLists().catch(() => undefined);
});
addEventListener('hashchange', route);
route();
void follow();
void followLists();
