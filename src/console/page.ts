import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';

/** Compiled files, whether this file runs compiled or as it is. */
const COMPILED = new URL('../../dist/', import.meta.url);

/** Scripts of the page. They have the same paths below `/console/`, so that they find each other. */
const SCRIPTS = ['console/browser/', 'console/format.js', 'admin/freshness.js'];

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Files next to this one that the page consists of, besides its scripts. */
const FILES = ['page.css', 'tables.css', 'account.css', 'icon.svg'];

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
  const assets = new Map<string, string>();
  app.get('/', async (_request, reply) => send(reply, 'page.html', read('page.html')));
  app.get<{ Params: { '*': string } }>('/console/*', async ({ params: { '*': name } }, reply) => {
    if (assets.size === 0) for (const [file, text] of readAssets()) assets.set(file, text);
    const text = assets.get(name);
    return text === undefined
      ? reply.code(404).send({ error: 'There is no such file.' })
      : send(reply, name, text);
  });
}

function send(reply: FastifyReply, name: string, text: string): FastifyReply {
  return reply
    .headers(HEADERS)
    .type(TYPES[extname(name)] ?? 'text/plain')
    .send(text);
}

function* readAssets(): Generator<readonly [string, string]> {
  for (const name of FILES) yield [name, read(name)];
  for (const folder of ['admin', 'console']) {
    for (const file of readdirSync(new URL(folder, COMPILED), { recursive: true, encoding: 'utf8' })) {
      const name = `${folder}/${file}`;
      const isScript = SCRIPTS.some((script) => name.startsWith(script)) && name.endsWith('.js');
      if (isScript) yield [name, readFileSync(new URL(name, COMPILED), 'utf8')];
    }
  }
}

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
