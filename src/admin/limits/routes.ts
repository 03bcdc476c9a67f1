import type { FastifyInstance, FastifyReply } from 'fastify';
import { OVERRIDE_SECTIONS } from '../../domain/buckets.ts';
import { type LiveLimitActions, StoreUnavailable } from './live.ts';
import { LimitRefused, readLimitRequest, readReason } from './request.ts';

interface Removal {
  readonly bucket?: string;
  readonly why?: string;
  readonly by?: string;
}

/** Adds `GET /limits/live`, and PUT and DELETE of `/limits/live/accounts/{id}` and `/limits/live/organizations/{id}`. */
export function addLiveLimitRoutes(app: FastifyInstance, actions: LiveLimitActions): void {
  app.get('/limits/live', async () => actions.list());
  for (const section of OVERRIDE_SECTIONS) {
    const path = `/limits/live/${section}/:id`;
    app.put<{ Params: { id: string } }>(path, ({ params: { id }, body }, reply) =>
      orRefusal(reply, () => actions.set({ section, id }, readLimitRequest(body, { section, id }))),
    );
    app.delete<{ Params: { id: string }; Querystring: Removal }>(path, ({ params: { id }, query }, reply) =>
      orRefusal(reply, () => actions.unset({ section, id }, query.bucket, readReason(query.why, query.by))),
    );
  }
}

async function orRefusal(reply: FastifyReply, act: () => Promise<unknown>): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof LimitRefused) return reply.code(400).send({ error: error.message });
    if (error instanceof StoreUnavailable) return reply.code(503).send({ error: error.message });
    throw error;
  }
}
