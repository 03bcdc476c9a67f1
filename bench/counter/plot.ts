import type { AccuracyRow } from './accuracy.ts';

const WIDTH = 860;
const NAMES_WIDTH = 260;
const ROW_HEIGHT = 17;
const GROUP_GAP = 34;
const HEAD_HEIGHT = 84;
/** The longest bar: twice the limit, which fixed windows reach. */
const MAX_RATIO = 2.1;

/** Bars of the fullest window over the limit, a group for each pattern, with a line at 1. */
export function drawAccuracy(rows: readonly AccuracyRow[]): string {
  const scale = (WIDTH - NAMES_WIDTH - 70) / MAX_RATIO;
  const parts: string[] = [];
  let y = HEAD_HEIGHT;
  for (const { pattern, verdicts } of rows) {
    parts.push(text(20, y, pattern, 'font-weight="600" fill="#16202a"'));
    y += 10;
    for (const [name, verdict] of verdicts) {
      if (verdict === undefined) continue;
      parts.push(bar(name, verdict.worstWindow, y, scale));
      y += ROW_HEIGHT;
    }
    y += GROUP_GAP;
  }
  const limitX = NAMES_WIDTH + scale;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13">
<title>Points in the fullest window, over the limit</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${text(20, 30, 'Points in the fullest window, over the limit', 'font-size="18" font-weight="600" fill="#16202a"')}
${text(20, 52, 'Three replicas, one Redis, the same requests through every counter. Right of the line the limit is broken.', 'fill="#5a6672"')}
${parts.join('\n')}
<line x1="${limitX}" x2="${limitX}" y1="${HEAD_HEIGHT - 16}" y2="${y - 20}" stroke="#b3261e" stroke-dasharray="4 3"/>
</svg>
`;
}

function bar(name: string, ratio: number, y: number, scale: number): string {
  const color = name === 'Weir' ? '#0b6e4f' : '#6b7785';
  const width = Math.min(ratio, MAX_RATIO) * scale;
  return [
    text(NAMES_WIDTH - 10, y + 11, name, 'text-anchor="end" fill="#16202a"'),
    `<rect x="${NAMES_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="12" fill="${color}"/>`,
    text(NAMES_WIDTH + width + 8, y + 11, ratio.toFixed(3), 'fill="#16202a"'),
  ].join('');
}

function text(x: number, y: number, words: string, attributes: string): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped}</text>`;
}
