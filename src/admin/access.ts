import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { PORT_TOKEN_FORMAT } from '../config/settings/port-token.ts';
import { isLoopback } from '../config/settings/section.ts';
import type { Settings } from '../config/settings/settings.ts';
import { judgeToken } from './judge-token.ts';

/** Why a request may not use the guarded part of the admin port. */
interface AccessRefusal {
  readonly status: 401 | 403 | 503;
  readonly error: string;
}

/** Names by which a browser or a command on this machine reaches a loopback address. */
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * Guards everything on the admin port but metrics and health: as a hook, it refuses a request without the token of
 * `admin.token` or `admin.tokenFile`. Without either, only a gateway that listens on a loopback address answers, and only
 * to a loopback name: another site's page cannot reach it through a name of its own (DNS rebinding).
 */
export function adminGuard(settings: Settings['admin']) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    reply.header('Cache-Control', 'no-store').header('X-Content-Type-Options', 'nosniff');
    const refusal = refusalOf(settings, request) ?? foreignPage(request);
    if (refusal === undefined) return undefined;
    if (refusal.status === 401) reply.header('WWW-Authenticate', 'Bearer');
    return reply.code(refusal.status).send({ error: refusal.error });
  };
}

function refusalOf(settings: Settings['admin'], { headers }: FastifyRequest): AccessRefusal | undefined {
  switch (judgeToken(headers.authorization, settings, 'admin')) {
    case 'right':
      return undefined;
    case 'unreadable':
      return {
        status: 503,
        error: `The file of admin.tokenFile cannot be read, or does not contain ${PORT_TOKEN_FORMAT}.`,
      };
    case 'unset':
      return withoutToken(settings, headers.host);
    case 'wrong':
      return { status: 401, error: 'The admin token is wrong: this gateway has another one.' };
    case 'missing':
      return { status: 401, error: 'Send the admin token as Authorization: Bearer.' };
  }
}

function withoutToken({ host: address }: Settings['admin'], host = ''): AccessRefusal | undefined {
  if (!isLoopback(address)) {
    return { status: 403, error: 'Set admin.tokenFile or WEIR_ADMIN_TOKEN to use this.' };
  }
  if (LOOPBACK_HOST.test(host)) return undefined;
  return { status: 403, error: 'Without an admin token, use a loopback name such as 127.0.0.1.' };
}

/** Another site's page may not act in the name of somebody whose browser reaches this port (CSRF). */
function foreignPage({ headers }: FastifyRequest): AccessRefusal | undefined {
  const { origin, host } = headers;
  if (origin === undefined || origin === `http://${host}` || origin === `https://${host}`) return undefined;
  return { status: 403, error: 'The pages of other sites may not use the admin port.' };
}

/** What Fastify calls a body that it does not read, and what the sender has to change. */
const UNREAD_BODIES: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'Send the body as JSON, with the header Content-Type: application/json.',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'The body is empty. Send a JSON object, or leave out the header Content-Type.',
  FST_ERR_CTP_INVALID_JSON_BODY: 'The body is not valid JSON.',
  FST_ERR_CTP_BODY_TOO_LARGE: 'The body is too long.',
};

/** Answers paths that the router does not read, with a `%` that encodes nothing or an id of more characters than any has. */
export function answerUnroutable(
  { code }: FastifyError,
  _request: FastifyRequest,
  reply: FastifyReply,
): void {
  const error =
    code === 'FST_ERR_BAD_URL'
      ? 'The path is not valid: encode a % of an id as %25, and other characters in UTF-8.'
      : 'The id in the path is too long.';
  reply.code(400).send({ error });
}

/**
 * Answers requests that reach no route, and errors of routes, as JSON with `error`, like every refusal of this port. Logs errors that no
 * route expects.
 */
export function answerTheRest(app: FastifyInstance, log: Logger): void {
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'The admin port has no such path, or not with this method.' }),
  );
  app.setErrorHandler((error: FastifyError, { routeOptions }, reply) => {
    const { code, message, statusCode = 500 } = error;
    if (statusCode >= 500) log.error({ err: error, path: routeOptions.url }, 'the admin port failed');
    return reply.code(statusCode).send({ error: UNREAD_BODIES[code] ?? message });
  });
}
