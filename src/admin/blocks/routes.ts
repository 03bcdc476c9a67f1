import type { FastifyInstance } from 'fastify';
import { isMapping } from '../../config/reader/schema-node.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import { BLOCK_SCOPES } from '../../facts/blocks.ts';
import { type Ages, orRefusal, withAge } from '../action.ts';
import { type BlockActions, blockTarget } from './actions.ts';

/** Adds `GET /blocks`, and PUT and DELETE of `/blocks/accounts/{id}`, and the same for principals, organizations and addresses. */
export function addBlockRoutes(
  app: FastifyInstance,
  actions: BlockActions,
  ages: Pick<Ages, 'blocks'>,
): void {
  app.get('/blocks', async (_request, reply) => {
    withAge(reply, ages.blocks());
    return actions.list();
  });
  for (const scope of BLOCK_SCOPES) {
    const path = `/blocks/${scopeNamed(scope).plural}/:id`;
    app.put<{ Params: { id: string } }>(path, ({ params: { id }, body }, reply) =>
      orRefusal(reply, async () => actions.block(blockTarget(scope, id), body)),
    );
    app.delete<{ Params: { id: string } }>(path, ({ params: { id }, query, body }, reply) =>
      orRefusal(reply, async () => {
        const reason = { ...(isMapping(body) ? body : {}), ...(isMapping(query) ? query : {}) };
        return actions.unblock(blockTarget(scope, id), reason);
      }),
    );
  }
}
