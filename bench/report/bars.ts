/** Horizontal bar charts, readable without a legend: a name, bars, and their values. */
import { DARK, GREEN, GREY, legend, RED, svg, text, WIDTH } from './svg.ts';

export interface BarChart {
  readonly title: string;
  readonly subtitle: string;
  readonly groups: readonly { readonly title?: string; readonly bars: readonly Bar[] }[];
  /** What each part of a bar is, for a stacked chart. */
  readonly parts?: readonly string[];
  /** A length at which a line stands that bars should not cross. */
  readonly bound?: number;
}

export interface Bar {
  readonly name: string;
  /** One length, or the lengths of a bar's parts. */
  readonly values: readonly number[];
  readonly label: string;
}

const NAMES_WIDTH = 260;
const ROOM = WIDTH - NAMES_WIDTH - 150;
const HEAD_HEIGHT = 78;
const ROW_HEIGHT = 26;
const BAR_HEIGHT = 18;
/** A bar this many times the next longest is cut, a little above that one's length. */
const TOO_MUCH = 8;
const CUT_AT = 1.3;
/** Weir's bars, and the others': the first part dark, the next lighter. */
const WEIR_COLORS = [GREEN, '#7cc6a8', '#c9e7db'];
const OTHER_COLORS = ['#6b7785', '#b4bcc5', '#dde1e5'];

export function drawBars({ title, subtitle, groups, parts = [], bound }: BarChart): string {
  const lengths = groups.flatMap(({ bars }) => bars.map(({ values }) => lengthOf(values)));
  const scale = ROOM / longestShown(lengths);
  const drawn: string[] = [];
  let y = HEAD_HEIGHT;
  for (const { title: name, bars } of groups) {
    if (name !== undefined) {
      drawn.push(text(20, y + 14, name, `font-weight="600" fill="${DARK}"`));
      y += ROW_HEIGHT;
    }
    for (const bar of bars) {
      drawn.push(drawBar(bar, y, scale));
      y += ROW_HEIGHT;
    }
  }
  if (bound !== undefined) {
    const x = (NAMES_WIDTH + bound * scale).toFixed(1);
    drawn.push(`<path d="M${x} ${HEAD_HEIGHT}V${y}" stroke="${RED}" stroke-dasharray="4 3"/>`);
  }
  const names = parts.map((part, index) => [`■ ${part}`, OTHER_COLORS[index] ?? GREY] as const);
  return svg(title, subtitle, y + 16, [legend(names, NAMES_WIDTH, 70), ...drawn]);
}

/** One bar that dwarfs all others is cut, so that the others can be compared. */
function longestShown(lengths: readonly number[]): number {
  const [longest = 0, second = 0] = lengths.toSorted((one, other) => other - one);
  return second > 0 && longest > TOO_MUCH * second ? CUT_AT * second : longest;
}

function drawBar({ name, values, label }: Bar, y: number, scale: number): string {
  const isWeir = name.startsWith('Weir');
  const colors = isWeir ? WEIR_COLORS : OTHER_COLORS;
  let x = NAMES_WIDTH;
  const rectangles = values.map((value, part) => {
    const width = Math.min(Math.max(0, value * scale), NAMES_WIDTH + ROOM - x);
    const rectangle = `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" fill="${colors[part] ?? colors[0]}"/>`;
    x += width;
    return rectangle;
  });
  if (lengthOf(values) * scale > ROOM + 1) {
    const at = NAMES_WIDTH + ROOM - 24;
    rectangles.push(
      `<path d="M${at} ${y + BAR_HEIGHT + 2}l8 -${BAR_HEIGHT + 4}h6l-8 ${BAR_HEIGHT + 4}z" fill="#ffffff"/>`,
    );
  }
  const look = `fill="${DARK}" font-weight="${isWeir ? 600 : 400}"`;
  return [
    text(NAMES_WIDTH - 10, y + 14, name, `text-anchor="end" ${look}`),
    ...rectangles,
    text(x + 8, y + 14, label, look),
  ].join('');
}

function lengthOf(values: readonly number[]): number {
  return values.reduce((total, value) => total + Math.max(0, value), 0);
}
