import type { FleetTalker as Talker } from '../../admin/fleet/fleet.ts';
import type { FleetSnapshot } from '../../admin/fleet/snapshot.ts';
import type { RankedScope } from '../../observe/usage/talkers.ts';
import { percent, short } from '../format.ts';
import { partOf } from './headline.ts';
import { Sparkline } from './widgets/chart.ts';
import { byId, element, ownerLink, remark, setText } from './widgets/dom.ts';
import { type LiveCell, Table } from './widgets/table.ts';

/** Fewer values do not fill a sparkline. */
const SHORTEST_TREND = 3;

/** Rows shown before somebody asks for all 50. */
const FEW = 10;

const WINDOWS = { '10s': 10, '1m': 60, '10m': 600 } as const;
const WINDOW_NAMES = { '10s': '10 s', '1m': '1 min', '10m': '10 min' };

/** `isFlooder` marks an owner that is listed because of its refusals. Its trend shows them. */
type ShownTalker = Talker & { readonly isFlooder?: true };

export type WindowName = keyof typeof WINDOWS;

const view: {
  window: WindowName;
  order: 'byPoints' | 'byRequests' | 'byRefused';
  readonly all: Set<RankedScope>;
  /** Values of the longest trend of the table that is drawn: all of its sparklines have the same time. */
  trend: number;
} = { window: '10s', order: 'byPoints', all: new Set(), trend: SHORTEST_TREND };

const organizationColumn = {
  title: 'Organization',
  style: 'wide',
  cell: ({ organization }: Talker) =>
    organization === undefined ? element('span', {}, '–') : ownerLink('organization', organization),
};

let last: FleetSnapshot | undefined;

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
      if (last !== undefined) showTalkers(last);
    },
  );
  choices('window', WINDOW_NAMES, view.window, (window) => {
    view.window = window;
    changed(window);
  });
}

/** Shows who spends most, or is refused most. */
export function showTalkers(fleet: FleetSnapshot): void {
  last = fleet;
  for (const ranked of ['accounts', 'organizations'] as const) {
    const talkers = fleet.top[ranked][view.order];
    view.trend = Math.max(SHORTEST_TREND, ...talkers.map(({ trend = [] }) => trend.length));
    tables[ranked].table.show(
      view.all.has(ranked) ? talkers : withFlooder(talkers.slice(0, FEW), fleet.top[ranked].byRefused),
    );
    const { part, more } = tables[ranked];
    setText(part, partOf(fleet) ?? '');
    more.hidden = talkers.length <= FEW;
    setText(more, view.all.has(ranked) ? `Show the first ${FEW}` : `Show all ${talkers.length}`);
  }
}

/** The first rows, with the owner that has the most refusals in the last one, unless it is among them: an owner that is refused everything has no points. */
function withFlooder(first: readonly Talker[], byRefused: readonly Talker[]): readonly ShownTalker[] {
  const [flooder] = byRefused;
  if (flooder === undefined || flooder.refused === 0 || first.some(({ id }) => id === flooder.id))
    return first;
  return [...first.slice(0, FEW - 1), { ...flooder, isFlooder: true }];
}

/** The Accounts and Organizations that are ranked now. */
export function rankedIds(): readonly string[] {
  if (last === undefined) return [];
  const { accounts, organizations } = last.top;
  return [accounts, organizations].flatMap((rankings) => rankings[view.order].map(({ id }) => id));
}

function tableOf(ranked: RankedScope, scope: string, title: string) {
  const part = remark('');
  const table = new Table<ShownTalker>(
    byId(ranked),
    title,
    {
      columns: [
        { title: scope === 'account' ? 'Account' : 'Organization', cell: () => nameCell(scope) },
        ...(scope === 'account' ? [organizationColumn] : []),
        { title: 'Trend', style: 'trend', cell: trendCell },
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
    },
    [part],
  );
  const more = element('button', { type: 'button', class: 'quiet more', hidden: true });
  more.addEventListener('click', () => {
    if (!view.all.delete(ranked)) view.all.add(ranked);
    if (last !== undefined) showTalkers(last);
  });
  byId(ranked).append(more);
  return { table, part, more };
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

/** A trend of refusals has their colour. */
function trendCell(): LiveCell<ShownTalker> {
  const sparkline = new Sparkline();
  return {
    node: sparkline.node,
    update({ trend = [], isFlooder = false }) {
      sparkline.node.classList.toggle('refusals', isFlooder || view.order === 'byRefused');
      sparkline.draw(trend, view.trend);
    },
  };
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

export function choices<T extends string>(
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
