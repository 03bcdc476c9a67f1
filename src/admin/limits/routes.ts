import type { FastifyInstance } from 'fastify';
import { OVERRIDE_SECTIONS } from '../../domain/limits/scopes.ts';
import { type Ages, orRefusal, withAge } from '../action.ts';
import type { BlockActions } from '../blocks/actions.ts';
import type { LiveLimitActions } from './live.ts';
import { limitOwner, readRemoval } from './request.ts';

/** Adds `GET /limits`, `GET /plans`, `GET /operations`, `GET /limits/live`, which has the blocks as well, and PUT and DELETE of `/limits/live/accounts/{id}`, and the same for other owners. */
export function addLiveLimitRoutes(
  app: FastifyInstance,
  actions: LiveLimitActions,
  blocks: BlockActions,
  ages: Pick<Ages, 'limits' | 'blocks'>,
): void {
  app.get('/limits', async () => actions.rows());
  app.get('/plans', async () => actions.plans());
  app.get('/operations', async () => actions.operations());
  app.get('/limits/live', async (_request, reply) => {
    withAge(reply, Math.max(ages.limits(), ages.blocks()));
    return [...blocks.list(), ...actions.list()];
  });
  for (const section of OVERRIDE_SECTIONS) {
    const path = `/limits/live/${section}/:id`;
    app.put<{ Params: { id: string } }>(path, ({ params: { id }, body }, reply) =>
      orRefusal(reply, () => {
        const owner = limitOwner(section, id);
        return actions.set(owner, actions.read(body, owner));
      }),
    );
    app.delete<{ Params: { id: string } }>(path, ({ params: { id }, query, body }, reply) =>
      orRefusal(reply, async () => {
        const { buckets, ...reason } = readRemoval(query, body);
        return actions.unset(limitOwner(section, id), buckets, reason);
      }),
    );
  }
}
