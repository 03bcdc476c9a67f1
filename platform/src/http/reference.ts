import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';

const DOCUMENT = new URL('../../openapi.yaml', import.meta.url);

const START =
  "Redoc.init('/v3/openapi.yaml', { hideDownloadButton: false }, document.getElementById('reference'));";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Payments Platform API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body { margin: 0 }</style>
</head>
<body>
<div id="reference"></div>
<script src="/v3/docs/redoc.js"></script>
<script>${START}</script>
</body>
</html>
`;

/** Prevents the renderer from loading anything from other hosts. */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(START).digest('base64')}'`,
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  'worker-src blob:',
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** Serves openapi.yaml, and a page that renders it with Redoc. Neither needs a caller; openapi.yaml makes both public and free at the gateway. */
export function serveReference(app: FastifyInstance): void {
  const document = readFileSync(DOCUMENT, 'utf8');
  app.get('/v3/openapi.yaml', async (_request, reply) =>
    reply.type('application/yaml; charset=utf-8').header('access-control-allow-origin', '*').send(document),
  );
  app.get('/v3/docs', async (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', POLICY).send(PAGE),
  );
  let renderer: Buffer | undefined;
  app.get('/v3/docs/redoc.js', async (_request, reply) => {
    renderer ??= readFileSync(rendererFile());
    return reply
      .type('text/javascript; charset=utf-8')
      .header('cache-control', 'public, max-age=86400')
      .send(renderer);
  });
}

/** `npm run build` copies it beside the compiled code, so that the package is not needed at run time. */
function rendererFile(): string {
  const copy = fileURLToPath(new URL('./redoc.js', import.meta.url));
  return existsSync(copy)
    ? copy
    : createRequire(import.meta.url).resolve('redoc/bundles/redoc.standalone.js');
}
