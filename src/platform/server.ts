import { randomBytes } from 'node:crypto';
import { type FastifyInstance, fastify, LogController } from 'fastify';
import { requestIdOf } from './http/call.ts';
import { loadContract } from './http/contract.ts';
import { answerProblems } from './http/refusals.ts';
import { bindContract } from './http/routes.ts';
import { memoryHandlers } from './memory.ts';

export interface PlatformOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly logLevel?: string;
  /** Prefix of a problem's `type`. */
  readonly baseUrl?: string;
}

export interface Platform {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the service that stands behind the gateway, with seeded demo data, and resolves once it listens. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const app = buildApp(options);
  const url = await app.listen({ host: options.host, port: options.port });
  return { url, close: () => app.close() };
}

function buildApp(options: PlatformOptions): FastifyInstance {
  const app = fastify({
    logger: { level: options.logLevel ?? 'warn' },
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    genReqId: requestIdOf,
    routerOptions: { caseSensitive: true },
    // An unknown member is refused by name, never silently removed; every fault is reported at once.
    ajv: {
      customOptions: { removeAdditional: false, coerceTypes: true, useDefaults: true, allErrors: true },
    },
  });
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.options('/*', async (_request, reply) =>
    reply.code(204).header('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE').send(),
  );
  answerProblems(app, options.baseUrl ?? 'https://api.example.com');
  bindContract(app, loadContract(), memoryHandlers(randomBytes(32)));
  return app;
}
