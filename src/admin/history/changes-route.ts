import type { FastifyInstance } from 'fastify';
import { readDuration } from '../action.ts';
import { shown } from './change.ts';
import { type History, KEPT_MS } from './history.ts';

/** Adds `GET /changes?since=24h`: what changed, newest first. 503 while Redis cannot be read. */
export function addChangesRoute(app: FastifyInstance, history: History, nowMs: () => number): void {
  app.get<{ Querystring: { since?: string } }>('/changes', async ({ query: { since = '24h' } }, reply) => {
    const ms = readDuration(since, KEPT_MS);
    if (ms === undefined)
      return reply.code(400).send({ error: 'since: must be a time such as 30m, 24h or 7d, and at most 7d.' });
    const { changes, isWhole } = await history.read();
    const sinceMs = nowMs() - ms;
    if (isWhole) return changes.filter(({ atMs }) => atMs >= sinceMs).map(shown);
    return reply.code(503).send({ error: 'The changes are in Redis, which cannot be read.' });
  });
}
