/** Horizontal bar charts as SVG, readable without a legend: a name, bars, and their values. */

export interface BarChart {
  readonly title: string;
  readonly subtitle: string;
  readonly bars: readonly Bar[];
  /** What each part of a bar is, for a stacked chart. */
  readonly parts?: readonly string[];
}

export interface Bar {
  readonly name: string;
  /** One length, or the lengths of a bar's parts. */
  readonly values: readonly number[];
  readonly label: string;
}

const WIDTH = 860;
const NAMES_WIDTH = 260;
const LABELS_WIDTH = 150;
const HEAD_HEIGHT = 78;
const ROW_HEIGHT = 30;
const BAR_HEIGHT = 20;
/** A bar this many times the next longest is cut, a little above that one's length. */
const TOO_MUCH = 8;
const CUT_AT = 1.3;
/** Weir's bars, and the others': the first part dark, the next lighter. */
const WEIR_COLORS = ['#0b6e4f', '#7cc6a8', '#c9e7db'];
const OTHER_COLORS = ['#6b7785', '#b4bcc5', '#dde1e5'];

export function drawBars({ title, subtitle, bars, parts = [] }: BarChart): string {
  const height = HEAD_HEIGHT + bars.length * ROW_HEIGHT + 16;
  const room = WIDTH - NAMES_WIDTH - LABELS_WIDTH;
  const scale = room / longestShown(bars.map(({ values }) => sum(values)));
  const rows = bars.map((bar, index) => drawBar(bar, HEAD_HEIGHT + index * ROW_HEIGHT, scale, room));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="14">
<title>${escapeXml(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="20" y="30" font-size="18" font-weight="600" fill="#16202a">${escapeXml(title)}</text>
<text x="20" y="52" font-size="13" fill="#5a6672">${escapeXml(subtitle)}</text>
${legend(parts)}${rows.join('\n')}
</svg>
`;
}

/** One bar that dwarfs all others is cut, so that the others can be compared. */
function longestShown(lengths: readonly number[]): number {
  const [longest = 0, second = 0] = lengths.toSorted((one, other) => other - one);
  return second > 0 && longest > TOO_MUCH * second ? CUT_AT * second : longest;
}

function drawBar({ name, values, label }: Bar, y: number, scale: number, room: number): string {
  const isWeir = name.startsWith('Weir');
  const colors = isWeir ? WEIR_COLORS : OTHER_COLORS;
  let x = NAMES_WIDTH;
  const rectangles = values.map((value, part) => {
    const width = Math.min(Math.max(0, value * scale), NAMES_WIDTH + room - x);
    const rectangle = `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" fill="${colors[part] ?? colors[0]}"/>`;
    x += width;
    return rectangle;
  });
  const isCut = sum(values) * scale > room + 1;
  if (isCut) {
    const at = NAMES_WIDTH + room - 24;
    rectangles.push(
      `<path d="M${at} ${y + BAR_HEIGHT + 2}l8 -${BAR_HEIGHT + 4}h6l-8 ${BAR_HEIGHT + 4}z" fill="#ffffff"/>`,
    );
  }
  const weight = isWeir ? 600 : 400;
  return `<text x="${NAMES_WIDTH - 10}" y="${y + 15}" text-anchor="end" fill="#16202a" font-weight="${weight}">${escapeXml(name)}</text>
${rectangles.join('')}
<text x="${(x + 8).toFixed(1)}" y="${y + 15}" fill="#16202a" font-weight="${weight}">${escapeXml(label)}</text>`;
}

function legend(parts: readonly string[]): string {
  let x = WIDTH - 20;
  const entries = [...parts].reverse().map((part, index) => {
    const color = OTHER_COLORS[parts.length - 1 - index];
    const text = `<text x="${x}" y="30" text-anchor="end" font-size="12" fill="#5a6672">${escapeXml(part)}</text>`;
    x -= part.length * 7 + 18;
    const square = `<rect x="${x}" y="20" width="12" height="12" fill="${color}"/>`;
    x -= 14;
    return text + square;
  });
  return entries.length === 0 ? '' : `${entries.join('')}\n`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + Math.max(0, value), 0);
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
