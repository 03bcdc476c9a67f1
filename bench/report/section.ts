import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../RESULTS.md', import.meta.url));

/** Prints the lines of a section, and writes them to the page unless only a quick look was asked for. */
export function publishSection(name: string, lines: readonly string[], isQuick = false): void {
  const text = lines.join('\n');
  if (!isQuick) writeSection(name, text);
  process.stdout.write(`${text}\n`);
}

/** Replaces what stands between a section's markers, or adds it to the end of the page. */
export function writeSection(name: string, text: string): void {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '# Results\n';
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  const framed = `${begin}\n${text}\n${end}`;
  const isNew = from === -1 || to === -1;
  writeFileSync(
    PAGE,
    isNew ? `${page.trimEnd()}\n\n${framed}\n` : page.slice(0, from) + framed + page.slice(to + end.length),
  );
}
