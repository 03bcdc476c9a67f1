import Fastify, { type FastifyInstance } from 'fastify';
import type { Metrics } from './metrics/metrics.ts';

/** Readiness of the process. It does not depend on the store. */
export interface Health {
  /** False once shutdown has begun. */
  isReady(): boolean;
}

/** The admin server, with `/metrics`, `/livez` and `/readyz`. It listens on a separate port that clients cannot reach. */
export function createAdminServer(metrics: Metrics, health: Health): FastifyInstance {
  const app = Fastify({ logger: false });
  app.get('/metrics', async (_request, reply) => {
    reply.type(metrics.contentType);
    return metrics.text();
  });
  app.get('/livez', async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const isReady = health.isReady();
    reply.code(isReady ? 200 : 503);
    return { status: isReady ? 'ready' : 'draining' };
  });
  return app;
}
