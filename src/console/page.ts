import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** What the page loads from `/console/`, and the files that it is put together from. The script is bundled, whether this file runs compiled or as it is. */
const ASSETS: ReadonlyMap<string, readonly string[]> = new Map([
  ['page.css', ['base.css', 'page.css']],
  ['icon.svg', ['icon.svg']],
  ['console.js', ['../../dist/console/browser/console.js']],
]);

/** The page loads and sends nothing outside of this port, runs no inline script, is in no frame, and parses no text as HTML. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
};

/** Adds the console: `/` and `/console/*`. They hold no data, so they need no token; the page asks for one. */
export function addConsolePage(app: FastifyInstance): void {
  const texts = new Map<string, string>();
  app.get('/', async (_request, reply) => send(reply, 'page.html', read('page.html')));
  app.get<{ Params: { '*': string } }>('/console/*', async ({ params: { '*': name } }, reply) => {
    const files = ASSETS.get(name);
    if (files === undefined) return reply.code(404).send({ error: 'There is no such file.' });
    const text = texts.get(name) ?? files.map(read).join('');
    texts.set(name, text);
    return send(reply, name, text);
  });
}

function send(reply: FastifyReply, name: string, text: string): FastifyReply {
  return reply
    .headers(HEADERS)
    .type(TYPES[extname(name)] ?? 'text/plain')
    .send(text);
}

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
