import type { FastifyInstance } from 'fastify';
import type { Fleet } from './fleet.ts';
import { WINDOWS } from './history.ts';

/** Adds `/usage/top?window=10s`. */
export function addTopRoute(app: FastifyInstance, fleet: Fleet): void {
  app.get<{ Querystring: { window?: string } }>('/usage/top', async (request, reply) => {
    const { window: asked = '10s' } = request.query;
    const window = WINDOWS.find((one) => one === asked);
    if (window === undefined) return reply.code(400).send({ error: `window takes ${WINDOWS.join(', ')}.` });
    return fleet.top(window);
  });
}
