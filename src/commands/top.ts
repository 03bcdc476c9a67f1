import { setTimeout } from 'node:timers/promises';
import type { FleetTalker, FleetTop } from '../admin/fleet/fleet.ts';
import { unknownSince } from '../admin/freshness.ts';
import { shortened } from '../console/format.ts';
import { printable } from '../domain/printable.ts';
import type { RankedScope } from '../observe/usage/talkers.ts';
import { WINDOWS, type Window } from '../observe/usage/windows.ts';
import { CommandError } from '../process/failure.ts';
import { isTop } from './admin-answers.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { print, printJson } from './print.ts';
import { standardOutput } from './terminal/output.ts';

export interface TopOptions extends AdminOptions {
  readonly window?: string;
  readonly by?: string | undefined;
  /** The earlier name of `by`. */
  readonly sort?: string;
  readonly once?: boolean;
  readonly json?: boolean;
}

interface View {
  window: Window;
  /** Undefined: owners with refusals first, then the others by points. */
  order: Order | undefined;
}

const ALL_ROWS = 50;
const REFRESH_MS = 1_000;

/** `weir top`: who spends most and who is refused most, once or as a live view of the terminal. */
export async function top(options: TopOptions): Promise<void> {
  const view = viewOf(options);
  const read = () => askAdmin(options, `/usage/top?window=${view.window}`, isTop) as Promise<FleetTop>;
  if (options.json) printJson(await read());
  else if (options.once || !process.stdout.isTTY) print(...topTable(await read(), view.order, ALL_ROWS));
  else await showLive(view, read);
}

function viewOf({ window = '10s', sort, by = sort }: TopOptions): View {
  const known = WINDOWS.find((one) => one === window);
  if (known === undefined) throw new CommandError(`--window takes ${WINDOWS.join(', ')}.`);
  const order = ORDERS.find((one) => one === by);
  if (by !== undefined && order === undefined) throw new CommandError(`--by takes ${ORDERS.join(', ')}.`);
  return { window: known, order };
}

const HELP = 'p points  n requests  r refused  a all  1 10s  2 1m  3 10m  q quit';
/** Lines that are no rows: headings, blank lines and the help. */
const OTHER_LINES = 7;

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const GREY = '\u001b[90m';
const PLAIN = '\u001b[0m';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Redraws the terminal every second and at every key, until `q`, Ctrl-C or SIGTERM. */
async function showLive(view: View, read: () => Promise<FleetTop>): Promise<void> {
  const { stdin } = process;
  const stdout = standardOutput();
  const quit = new AbortController();
  let redraw = new AbortController();
  const end = () => {
    quit.abort();
    redraw.abort();
  };
  const pressed = (key: Buffer) => {
    if (!applyKey(view, key.toString())) quit.abort();
    redraw.abort();
  };
  stdin.setRawMode?.(true);
  stdin.on('data', pressed);
  process.once('SIGTERM', end);
  stdout.write(ENTER);
  try {
    const latest = new Latest(await read(), read);
    while (!quit.signal.aborted) {
      redraw = new AbortController();
      await latest.refresh();
      const rows = Math.max(1, Math.floor((stdout.rows - OTHER_LINES) / 2));
      const lines = [...topTable(latest.top, view.order, rows), latest.problem, HELP];
      const [before, after] = latest.problem === '' ? ['', ''] : [GREY, PLAIN];
      const shown = lines.map((line) => before + line.slice(0, stdout.columns) + after + CLEAR_LINE);
      stdout.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`);
      if (!quit.signal.aborted)
        await setTimeout(REFRESH_MS, undefined, { signal: redraw.signal }).catch(() => undefined);
    }
  } finally {
    process.off('SIGTERM', end);
    stdin.off('data', pressed);
    stdin.setRawMode?.(false);
    stdin.pause();
    stdout.write(LEAVE);
  }
}

/** The rankings that were read last. They stay while the gateway does not answer. */
export class Latest {
  readonly #read: () => Promise<FleetTop>;
  #top: FleetTop;
  readonly #nowMs: () => number;
  #readAtMs: number;
  #failure = 'the gateway does not answer';
  #reading: Promise<void> | undefined;

  constructor(first: FleetTop, read: () => Promise<FleetTop>, nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
    this.#readAtMs = nowMs();
    this.#top = first;
    this.#read = read;
  }

  get top(): FleetTop {
    return this.#top;
  }

  /** Since when the rankings are unknown, and why; empty while they are fresh. */
  get problem(): string {
    const sinceMs = unknownSince(this.#readAtMs, this.#nowMs());
    return sinceMs === null ? '' : `unknown since ${new Date(sinceMs).toISOString()}: ${this.#failure}`;
  }

  /** Reads again, and waits for the answer for as long as a view may. */
  async refresh(): Promise<void> {
    this.#reading ??= this.#readOnce();
    await Promise.race([this.#reading, setTimeout(REFRESH_MS, undefined, { ref: false })]);
  }

  async #readOnce(): Promise<void> {
    try {
      this.#top = await this.#read();
      this.#readAtMs = this.#nowMs();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.#failure = error.message;
    } finally {
      this.#reading = undefined;
    }
  }
}

/** False where the key ends the view. */
function applyKey(view: View, key: string): boolean {
  const index = ['1', '2', '3'].indexOf(key);
  view.window = WINDOWS[index] ?? view.window;
  if (key === 'a') view.order = undefined;
  view.order = KEYS[key] ?? view.order;
  return key !== 'q' && key !== '\u0003';
}

const ORDERS = ['points', 'requests', 'refused'] as const;

type Order = (typeof ORDERS)[number];

const KEYS: Readonly<Record<string, Order>> = { p: 'points', n: 'requests', r: 'refused' };

const HEADINGS: Readonly<Record<RankedScope, string>> = {
  accounts: 'Account',
  organizations: 'Organization',
};
const MAX_ID_LENGTH = 28;
const MAX_ORGANIZATION_LENGTH = 20;

/** The rankings as text, at most `rows` of each. */
function topTable(top: FleetTop, order: Order | undefined, rows: number): readonly string[] {
  const replicas = `${top.replicas} ${top.replicas === 1 ? 'replica' : 'replicas'}`;
  const { othersUnknownSince } = top;
  const others = othersUnknownSince === null ? '' : `, the others are unknown since ${othersUnknownSince}`;
  return [
    `last ${top.window} as of ${top.asOf}, ${replicas}${others}, by ${order ?? 'refused, then points'}`,
    '',
    ...tableOf('accounts', top, order, rows),
    '',
    ...tableOf('organizations', top, order, rows),
  ];
}

function tableOf(
  ranked: RankedScope,
  top: FleetTop,
  order: Order | undefined,
  rows: number,
): readonly string[] {
  const talkers = ranking(top[ranked], order).slice(0, rows);
  const head = [HEADINGS[ranked], ranked === 'accounts' ? 'Organization' : '', ...ORDERS];
  return talkers.length === 0 ? [columns(head), 'none'] : [columns(head), ...talkers.map(rowOf)];
}

function ranking(rankings: FleetTop[RankedScope], order: Order | undefined): readonly FleetTalker[] {
  const { byPoints, byRequests, byRefused } = rankings;
  if (order !== undefined) return { points: byPoints, requests: byRequests, refused: byRefused }[order];
  const refused = new Set(byRefused.map(({ id }) => id));
  return [...byRefused, ...byPoints.filter(({ id }) => !refused.has(id))];
}

function rowOf({
  id,
  organization = '',
  points,
  requests,
  refused,
  error,
  blockedUntil,
}: FleetTalker): string {
  const row = columns([id, organization, points, requests, refused]);
  const overstated = error === 0 ? '' : `  points may be overstated by ${error}`;
  return `${row}${overstated}${blockedUntil === undefined ? '' : `  blocked until ${blockedUntil}`}`;
}

function columns([id, organization, ...numbers]: readonly (string | number)[]): string {
  return [
    shortened(printable(String(id)), MAX_ID_LENGTH - 1).padEnd(MAX_ID_LENGTH),
    shortened(printable(String(organization)), MAX_ORGANIZATION_LENGTH - 1).padEnd(MAX_ORGANIZATION_LENGTH),
    ...numbers.map((one) => String(one).padStart(10)),
  ].join('');
}
