/** What the charts have in common. */

export const WIDTH = 860;
export const DARK = '#16202a';
export const GREY = '#5a6672';
export const GREEN = '#0b6e4f';
export const RED = '#b3261e';

/** A chart as SVG, with a title that stands in the picture too. */
export function svg(title: string, subtitle: string, height: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13">
<title>${escapeXml(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${text(20, 30, title, `font-size="18" font-weight="600" fill="${DARK}"`)}
${text(20, 52, subtitle, `fill="${GREY}"`)}
${parts.join('\n')}
</svg>
`;
}

export function text(x: number, y: number, words: string, attributes: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escapeXml(words)}</text>`;
}

/** Names beside each other, each in its color. */
export function legend(
  entries: readonly (readonly [name: string, color: string])[],
  left: number,
  y: number,
): string {
  let x = left;
  return entries
    .map(([name, color]) => {
      const entry = text(x, y, name, `fill="${color}"`);
      x += name.length * 7 + 24;
      return entry;
    })
    .join('');
}

function escapeXml(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
