import type { FleetTalker as Talker } from '../../fleet/fleet.ts';
import type { FleetSnapshot } from '../../fleet/snapshot.ts';
import { Sparkline } from './widgets/chart.ts';
import { byId, element, ownerLink, setText } from './widgets/dom.ts';
import { percent, short } from './widgets/format.ts';
import { type LiveCell, Table } from './widgets/table.ts';

type Ranked = 'accounts' | 'organizations';

/** Values of a sparkline: one minute. */
const HISTORY = 60;

/** Rows shown before somebody asks for all 50. */
const FEW = 10;

const WINDOWS = { '10s': 10, '1m': 60, '10m': 600 } as const;
const WINDOW_NAMES = { '10s': '10 s', '1m': '1 min', '10m': '10 min' };

export type WindowName = keyof typeof WINDOWS;

interface View {
  window: WindowName;
  order: 'byPoints' | 'byRequests' | 'byRefused';
  readonly all: Set<Ranked>;
}

const view: View = { window: '10s', order: 'byPoints', all: new Set() };
const organizationColumn = {
  title: 'Organization',
  style: 'wide',
  cell: ({ organization }: Talker) =>
    organization === undefined ? element('span', {}, '–') : ownerLink('organization', organization),
};

let last: FleetSnapshot | undefined;

/** What was shown of each owner in the last minute. */
const histories: Record<Ranked, Map<string, number[]>> = { accounts: new Map(), organizations: new Map() };

const tables = {
  accounts: tableOf('accounts', 'account', 'Accounts'),
  organizations: tableOf('organizations', 'organization', 'Organizations'),
};

/** Builds the choices of order and period. `changed`: another period was chosen. */
export function startTalkers(changed: (window: WindowName) => void): void {
  choices(
    'order',
    { byPoints: 'Points', byRequests: 'Requests', byRefused: 'Refusals' },
    view.order,
    (order) => {
      view.order = order;
      forgetHistories();
    },
  );
  choices('window', WINDOW_NAMES, view.window, (window) => {
    view.window = window;
    forgetHistories();
    changed(window);
  });
}

/** Shows who spends most, or is refused most. */
export function showTalkers(fleet: FleetSnapshot): void {
  const isNew = fleet.second !== last?.second || fleet.top.window !== last.top.window;
  last = fleet;
  for (const ranked of ['accounts', 'organizations'] as const) {
    const talkers = fleet.top[ranked][view.order];
    if (isNew) remember(histories[ranked], talkers);
    tables[ranked].table.show(view.all.has(ranked) ? talkers : talkers.slice(0, FEW));
    const { more } = tables[ranked];
    more.hidden = talkers.length <= FEW;
    setText(more, view.all.has(ranked) ? `Show the first ${FEW}` : `Show all ${talkers.length}`);
  }
}

/** The Accounts and Organizations that are ranked now. */
export function rankedIds(): readonly string[] {
  return [...histories.accounts.keys(), ...histories.organizations.keys()];
}

function remember(histories: Map<string, number[]>, talkers: readonly Talker[]): void {
  const values = new Map(talkers.map((talker) => [talker.id, weightOf(talker)]));
  for (const id of values.keys()) if (!histories.has(id)) histories.set(id, []);
  for (const [id, history] of histories) {
    history.push(values.get(id) ?? 0);
    if (history.length > HISTORY) history.shift();
    if (!values.has(id) && history.every((one) => one === 0)) histories.delete(id);
  }
}

function weightOf({ points, requests, refused }: Talker): number {
  return { byPoints: points, byRequests: requests, byRefused: refused }[view.order];
}

function forgetHistories(): void {
  for (const one of Object.values(histories)) one.clear();
  if (last !== undefined) showTalkers(last);
}

function tableOf(ranked: Ranked, scope: string, title: string) {
  const table = new Table<Talker>(byId(ranked), title, {
    columns: [
      { title: scope === 'account' ? 'Account' : 'Organization', cell: () => nameCell(scope) },
      ...(scope === 'account' ? [organizationColumn] : []),
      { title: 'Last minute', style: 'trend', cell: () => trendOf(ranked) },
      {
        title: 'Points/s',
        style: 'number',
        text: ({ points, error }) => `${error > 0 ? '≤ ' : ''}${perSecond(points)}`,
      },
      { title: 'Requests/s', style: 'number wide', text: ({ requests }) => perSecond(requests) },
      { title: 'Refused', style: 'number', cell: refusedCell },
    ],
    empty: 'No requests in this period.',
    keyOf: ({ id }) => id,
  });
  const more = element('button', { type: 'button', class: 'quiet more', hidden: true });
  more.addEventListener('click', () => {
    if (!view.all.delete(ranked)) view.all.add(ranked);
    if (last !== undefined) showTalkers(last);
  });
  byId(ranked).append(more);
  return { table, more };
}

function nameCell(scope: string): LiveCell<Talker> {
  const node = element('span');
  return {
    node,
    update({ id, blockedUntil }) {
      const state = `${id} ${blockedUntil}`;
      if (node.dataset.state === state) return;
      node.dataset.state = state;
      const mark = blockedUntil === undefined ? [] : [' ', element('b', { class: 'refused' }, 'blocked')];
      node.replaceChildren(ownerLink(scope, id), ...mark);
    },
  };
}

function perSecond(value: number): string {
  return short(value / WINDOWS[view.window]);
}

function trendOf(ranked: Ranked): LiveCell<Talker> {
  const sparkline = new Sparkline(HISTORY);
  return { node: sparkline.node, update: ({ id }) => sparkline.draw(histories[ranked].get(id) ?? []) };
}

function refusedCell(): LiveCell<Talker> {
  const node = element('span');
  return {
    node,
    update({ refused, requests }) {
      const share = requests === 0 ? 0 : refused / requests;
      setText(node, refused === 0 ? '0' : `${short(refused)} · ${percent(share)}`);
      node.className = refused === 0 ? 'muted' : 'refused';
    },
  };
}

function choices<T extends string>(
  id: string,
  names: Readonly<Record<T, string>>,
  chosen: T,
  choose: (value: T) => void,
): void {
  for (const [value, name] of Object.entries(names) as [T, string][]) {
    const input = element('input', { type: 'radio', name: id, value, checked: value === chosen });
    input.addEventListener('change', () => choose(value));
    byId(id).append(element('label', {}, input, element('span', {}, name)));
  }
}
