import { type FastifyInstance, fastify, LogController } from 'fastify';
import { requestIdFrom } from '../../domain/request-id.ts';
import type { Database } from '../database/schema.ts';
import type { PlatformSettings } from '../settings.ts';
import { loadContract } from './contract.ts';
import { answerProblems } from './refusals.ts';
import { bindContract, type Handlers } from './routes.ts';
import { useSharedValidators } from './validators.ts';
import { runWrite } from './writes.ts';

/** The HTTP server of the platform. Calls `afterWrite` after each committed write. */
export function buildApp(
  settings: PlatformSettings,
  db: Database,
  handlers: Handlers,
  afterWrite: () => void,
): FastifyInstance {
  const app = fastify({
    logger: { level: settings.logLevel },
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    genReqId: (request) => requestIdFrom(request.headers['x-request-id']),
  });
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.options('/*', async (_request, reply) =>
    reply.code(204).header('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE').send(),
  );
  // A write without a body may have a JSON content type.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, null) : app.getDefaultJsonParser('error', 'ignore')(request, String(body), done),
  );
  app.removeContentTypeParser('text/plain');
  useSharedValidators(app);
  answerProblems(app, settings.baseUrl);
  bindContract(app, loadContract(), handlers, db, async (call, handler) => {
    const answer = await runWrite(db, call, handler, settings.now());
    afterWrite();
    return answer;
  });
  return app;
}
