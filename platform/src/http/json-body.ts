import { TextDecoder } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { NO_BODY } from './contract.ts';
import { invalid, PlatformError } from './problems.ts';

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

/**
 * Parses JSON bodies. A body that is not UTF-8 is a 400 (RFC 8259 section 8.1). A write without a body may have a JSON content
 * type. A body `null` is a 422 where a body is declared: Fastify validates a missing body as `null`, which is valid where a body is optional.
 */
export function parseJsonBodies(app: FastifyInstance): void {
  // Every body is validated, which refuses `__proto__` by name as any other member that the document does not have.
  const parse = app.getDefaultJsonParser('ignore', 'ignore');
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, null);
    const { 'content-encoding': encoding = 'identity' } = request.headers;
    if (encoding.toLowerCase() !== 'identity')
      return done(new PlatformError(400, 'BadRequest', 'The body must have no Content-Encoding.'));
    const [, charset = 'utf-8'] = CHARSET.exec(request.headers['content-type'] ?? '') ?? [];
    const text = ['utf-8', 'utf8'].includes(charset.toLowerCase()) ? decode(utf8, body as Buffer) : undefined;
    if (text === undefined)
      return done(new PlatformError(400, 'BadRequest', 'The body is not JSON in UTF-8.'));
    return parse(request, text, (error, value) => {
      const { body: schema = NO_BODY } = request.routeOptions.schema ?? {};
      const isWrongNull = !error && value === null && schema !== NO_BODY;
      done(isWrongNull ? invalid('body', 'must be object') : error, value);
    });
  });
  app.removeContentTypeParser('text/plain');
  // Many clients send an empty body with a type of their own, or with none, where no body is declared.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    if (body.length === 0) return done(null, null);
    return done(new PlatformError(400, 'BadRequest', 'The body must be application/json.'));
  });
}

function decode(utf8: TextDecoder, body: Buffer): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}
