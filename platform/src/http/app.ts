import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, fastify, LogController } from 'fastify';
import type { Database } from '../database/schema.ts';
import { GRACE_MS } from '../program/grace.ts';
import type { PlatformSettings } from '../settings.ts';
import { loadContract } from './contract.ts';
import { parseJsonBodies } from './json-body.ts';
import { PlatformError } from './problems.ts';
import { answerTheRest, createRefusals } from './refusals.ts';
import { requestIdFrom } from './request-id.ts';
import { bindContract, type Handlers } from './routes.ts';
import { collectMethods } from './served-methods.ts';
import { answerUnreadable, refuseExpectations } from './unreadable.ts';
import { useSharedValidators } from './validators.ts';
import { runWrite } from './writes.ts';

/** More than Node accepts. */
const MAX_URL_LENGTH = 65_536;

/** The header fields that the platform reads. Node joins or drops the second one of a name. */
const SINGLE = [
  ...['content-type', 'idempotency-key', 'x-account-id', 'x-organization-id', 'x-principal-id'],
  'x-principal-type',
];

/** The HTTP server of the platform. Calls `afterWrite` after each committed write. */
export function buildApp(
  settings: PlatformSettings,
  db: Database,
  handlers: Handlers,
  afterWrite: () => void,
): FastifyInstance {
  const sendRefusal = createRefusals(settings.baseUrl);
  const app = fastify({
    logger: { level: settings.logLevel },
    logController: new LogController({ disableRequestLogging: true }),
    // The document limits the length of ids, and its 422 names the parameter.
    routerOptions: { maxParamLength: MAX_URL_LENGTH },
    http: { requireHostHeader: false },
    // Fastify's own answer while it closes is not a problem body.
    return503OnClosing: false,
    genReqId: (request) => requestIdFrom(request.headers['x-request-id']),
    clientErrorHandler: answerUnreadable(settings.baseUrl),
    frameworkErrors: (error, request, reply) => void sendRefusal(request, reply, error),
  });
  const served = collectMethods(app);
  refuseExpectations(app.server, settings.baseUrl);
  closeAfterAnswers(app);
  app.addHook('onRequest', async (request) => refuseAmbiguous(request.raw));
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  parseJsonBodies(app);
  useSharedValidators(app);
  answerTheRest(app, sendRefusal, served);
  bindContract(app, loadContract(), handlers, db, async (call, handler) => {
    const answer = await runWrite(db, call, handler, settings.now());
    afterWrite();
    return answer;
  });
  return app;
}

/**
 * Lets requests under way be answered while the application closes. Node closes the connections that are idle at that moment. The
 * others close with their answer, or after the grace period, because a client may never send the rest of its request.
 */
function closeAfterAnswers(app: FastifyInstance): void {
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    setTimeout(() => app.server.closeAllConnections(), GRACE_MS).unref();
  });
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing) reply.header('connection', 'close');
  });
}

/** Throws a 400 for a request without Host (RFC 9112 section 3.2), or with two values where there may be one. */
function refuseAmbiguous({ httpVersion, headers, headersDistinct }: IncomingMessage): void {
  if (httpVersion === '1.1' && headers.host === undefined)
    throw new PlatformError(400, 'BadRequest', 'The request has no Host.');
  const twice = SINGLE.find((name) => (headersDistinct[name]?.length ?? 0) > 1);
  if (twice) throw new PlatformError(400, 'BadRequest', `The request has two header fields ${twice}.`);
}
