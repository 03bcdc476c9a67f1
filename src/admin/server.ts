import Fastify, { type FastifyInstance } from 'fastify';
import type { Metrics } from './metrics/metrics.ts';

/** What readiness depends on: the process's own state, never the store's (DESIGN section 5). */
export interface Health {
  /** False once the process has begun to shut down. */
  isReady(): boolean;
}

/** The admin server: `/metrics`, `/livez` and `/readyz`, on a port of its own that clients never see. */
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
