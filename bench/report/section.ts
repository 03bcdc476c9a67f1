import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../RESULTS.md', import.meta.url));

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

/** The path of a file in bench/results, whose folder exists afterwards. */
export function resultFile(name: string): string {
  const file = fileURLToPath(new URL(`../results/${name}`, import.meta.url));
  mkdirSync(dirname(file), { recursive: true });
  return file;
}

/** Writes figures to a file in bench/results. */
export function writeResult(name: string, content: unknown): void {
  writeFileSync(
    resultFile(name),
    typeof content === 'string' ? content : `${JSON.stringify(content, null, 1)}\n`,
  );
}

/** Lines of a table in GitHub's Markdown. A column whose name ends with a colon is aligned to the right. */
export function table(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const names = columns.map((name) => name.replace(/:$/, ''));
  const rules = columns.map((name) => (name.endsWith(':') ? '--:' : '---'));
  return [names, rules, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

/** `12,345`. */
export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}
