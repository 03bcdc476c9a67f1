import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type FieldError, PlatformError, problemBody } from './problems.ts';
import type { ServedMethods } from './served-methods.ts';

interface Violation {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** Further errors are not listed, to keep the response small. */
const MAX_ERRORS = 100;

/** Sends a refusal as problem+json. */
export type SendRefusal = (request: FastifyRequest, reply: FastifyReply, error: Error) => FastifyReply;

/** The message of a failure goes to the log alone. */
export function createRefusals(baseUrl: string): SendRefusal {
  return (request, reply, error) => {
    const refusal = toRefusal(error);
    if (refusal.status >= 500) request.log.error({ err: error }, 'a request failed');
    return (
      reply
        .code(refusal.status)
        .type('application/problem+json')
        .header('x-request-id', request.id)
        // Fastify adds a charset to the type of a text.
        .send(Buffer.from(JSON.stringify(problemBody(refusal, baseUrl, request.id))))
    );
  };
}

/** Answers errors, OPTIONS, methods that a path does not have, and paths that do not exist. */
export function answerTheRest(app: FastifyInstance, send: SendRefusal, served: ServedMethods): void {
  app.setErrorHandler((error: Error, request, reply) => send(request, reply, error));
  const answerUnserved = (request: FastifyRequest, reply: FastifyReply) => {
    const [path = ''] = request.url.split('?');
    const methods = served.at(path);
    if (methods.length === 0) {
      const detail = `Nothing is served at ${request.method} ${path}.`;
      return send(request, reply, new PlatformError(404, 'ResourceNotFound', detail));
    }
    reply.header('allow', [...methods, 'OPTIONS'].join(', '));
    if (request.method === 'OPTIONS') return reply.code(204).send();
    return send(
      request,
      reply,
      new PlatformError(405, 'MethodNotAllowed', `${request.method} is not served here.`),
    );
  };
  app.setNotFoundHandler(answerUnserved);
  app.addHook('onRequest', async (request, reply) => {
    // Fastify refuses a QUERY without a Content-Type before its path. Its router takes `/payees/` for a payee without an id.
    const isUnserved = request.is404 && request.method === 'QUERY';
    if (isUnserved || Object.values(request.params as object).includes(''))
      return answerUnserved(request, reply);
  });
}

function toRefusal(error: Error): PlatformError {
  if (error instanceof PlatformError) return error;
  const { validation, statusCode = 500 } = error as {
    validation?: readonly Violation[];
    statusCode?: number;
  };
  if (validation) {
    const errors = validation.slice(0, MAX_ERRORS).map(toFieldError);
    const detail = errors.map(({ field, message }) => `${field} ${message}`).join('; ');
    return new PlatformError(422, 'ValidationError', detail, errors);
  }
  if (isDataException(error)) {
    const message = 'holds a character or a number that cannot be stored';
    return new PlatformError(422, 'ValidationError', `The request ${message}.`, [
      { field: 'request', message },
    ]);
  }
  if (statusCode === 413) return new PlatformError(413, 'PayloadTooLarge', 'The request body is too large.');
  if (statusCode < 500) return new PlatformError(400, 'BadRequest', error.message);
  return new PlatformError(503, 'ServiceUnavailable', 'The service has a problem. Try again later.');
}

/** SQLSTATE class 22: a value that cannot be stored, such as a text with a NUL. */
function isDataException(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code);
}

function toFieldError({ keyword, instancePath, params, message }: Violation): FieldError {
  const path = instancePath.split('/').slice(1);
  const member = params.additionalProperty ?? params.missingProperty;
  if (typeof member === 'string') path.push(member);
  const names = path.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const field = names.length === 0 ? 'body' : names.join('.');
  if (keyword === 'additionalProperties') return { field, message: 'is not supported here' };
  if (Array.isArray(params.type)) return { field, message: `must be ${params.type.join(' or ')}` };
  return { field, message: message ?? 'is not valid' };
}
