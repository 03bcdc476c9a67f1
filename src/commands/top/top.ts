import { setTimeout } from 'node:timers/promises';
import { WINDOWS, type Window } from '../../admin/top/history.ts';
import type { Top } from '../../admin/top/talkers.ts';
import { type AdminOptions, askAdmin } from '../admin-client.ts';
import { CommandError } from '../failure.ts';
import { print } from '../print.ts';
import { type Order, topTable } from './table.ts';

export interface TopOptions extends AdminOptions {
  readonly window?: string;
  readonly sort?: string;
  readonly once?: boolean;
  readonly json?: boolean;
}

interface View {
  window: Window;
  order: Order;
}

const ALL_ROWS = 50;
const REFRESH_MS = 1_000;

/** `weir top`: who spends most and who is refused most, once or as a live view of the terminal. */
export async function top(options: TopOptions): Promise<void> {
  const view = viewOf(options);
  const read = () => askAdmin(options, `/usage/top?window=${view.window}`) as Promise<Top>;
  if (options.json) print(JSON.stringify(await read(), null, 2));
  else if (options.once || !process.stdout.isTTY)
    print(topTable(await read(), view.order, ALL_ROWS).join('\n'));
  else await showLive(view, read);
}

function viewOf({ window = '10s', sort = 'points' }: TopOptions): View {
  const known = WINDOWS.find((one) => one === window);
  if (known === undefined) throw new CommandError(`--window takes ${WINDOWS.join(', ')}.`);
  if (sort !== 'points' && sort !== 'refused') throw new CommandError('--sort takes points or refused.');
  return { window: known, order: sort };
}

const HELP = 'p points  r refused  1 10s  2 1m  3 10m  q quit';
/** Lines that are no rows: headings, blank lines and the help. */
const OTHER_LINES = 7;

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Redraws the terminal every second and at every key, until `q`, Ctrl-C or SIGTERM. */
async function showLive(view: View, read: () => Promise<Top>): Promise<void> {
  const { stdin, stdout } = process;
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
    while (!quit.signal.aborted) {
      redraw = new AbortController();
      const rows = Math.max(1, Math.floor((stdout.rows - OTHER_LINES) / 2));
      const lines = [...topTable(await read(), view.order, rows), '', HELP];
      const shown = lines.map((line) => line.slice(0, stdout.columns) + CLEAR_LINE).join('\r\n');
      stdout.write(`${HOME}${shown}${CLEAR_BELOW}`);
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

/** False where the key ends the view. */
function applyKey(view: View, key: string): boolean {
  const index = ['1', '2', '3'].indexOf(key);
  view.window = WINDOWS[index] ?? view.window;
  if (key === 'p') view.order = 'points';
  if (key === 'r') view.order = 'refused';
  return key !== 'q' && key !== '\u0003';
}
