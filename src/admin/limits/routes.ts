import type { FastifyInstance } from 'fastify';
import { OVERRIDE_SECTIONS } from '../../domain/buckets.ts';
import { orRefusal, readReason } from '../action.ts';
import type { LiveLimitActions } from './live.ts';
import { readLimitRequest } from './request.ts';

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
