import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { notFound } from './problems.ts';

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

const STYLE = `body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark }
table { border-collapse: collapse } td, th { border: 1px solid #8888; padding: .3rem .6rem; text-align: left; vertical-align: top }
pre { overflow-x: auto }`;

/**
 * Serves the page at the `type` URI of each problem: its section of docs/errors.md. The demo's configuration makes these pages public and
 * free at the gateway.
 */
export function serveErrorPages(app: FastifyInstance): void {
  let pages: ReadonlyMap<string, string> | undefined;
  app.get<{ Params: { code: string } }>('/errors/:code', async ({ params }, reply) => {
    pages ??= pagesOf(readFileSync(documentFile(), 'utf8'));
    const page = pages.get(params.code);
    if (page === undefined) throw notFound('error', params.code);
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      .header('access-control-allow-origin', '*')
      .send(page);
  });
}

/** `npm run build` copies it beside the compiled code. */
function documentFile(): string {
  const copy = fileURLToPath(new URL('./errors.md', import.meta.url));
  return existsSync(copy) ? copy : fileURLToPath(new URL('../../../docs/errors.md', import.meta.url));
}

/** A page for each section whose title is a code, by the code in kebab-case. */
function pagesOf(document: string): ReadonlyMap<string, string> {
  const pages = new Map<string, string>();
  for (const section of document.split(/^## /m).slice(1)) {
    const [, code, text] = /^(\w+)\n([\s\S]*)$/.exec(section) ?? [];
    if (code === undefined || text === undefined) continue;
    pages.set(code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase(), pageOf(code, text));
  }
  return pages;
}

function pageOf(code: string, text: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${code}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${STYLE}</style>
</head>
<body>
<h1>${code}</h1>
${text.trim().split(/\n\n+/).map(blockOf).join('\n')}
</body>
</html>
`;
}

/** A paragraph, list, table or code block of Markdown, as far as docs/errors.md uses it. */
function blockOf(block: string): string {
  if (block.startsWith('```'))
    return `<pre><code>${escaped(block.replaceAll(/^```.*\n?/gm, ''))}</code></pre>`;
  if (block.startsWith('* ')) {
    const items = block.split(/^\* /m).slice(1);
    return `<ul>${items.map((item) => `<li>${inline(item)}</li>`).join('')}</ul>`;
  }
  if (!block.startsWith('|')) return `<p>${inline(block)}</p>`;
  const [head = '', , ...rows] = block.split('\n');
  return `<table>${rowOf(head, 'th')}${rows.map((row) => rowOf(row, 'td')).join('')}</table>`;
}

function rowOf(row: string, cell: 'td' | 'th'): string {
  const cells = row.slice(1, row.lastIndexOf('|')).split('|');
  return `<tr>${cells.map((text) => `<${cell}>${inline(text.trim())}</${cell}>`).join('')}</tr>`;
}

/** Links lead to other pages of docs, which are not served, so only their text is shown. */
function inline(text: string): string {
  const [before = '', ...linked] = escaped(text).split('](');
  return [before, ...linked.map((part) => part.slice(part.indexOf(')') + 1))]
    .join(']')
    .replaceAll(/\[([^[\]]+)\]/g, '$1')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/\*([^*]+)\*/g, '<em>$1</em>');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
