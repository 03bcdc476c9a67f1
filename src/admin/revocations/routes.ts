import type { FastifyInstance } from 'fastify';
import { type Ages, orRefusal, readReason, withAge } from '../action.ts';
import type { RevocationActions } from './actions.ts';
import { readRevocationRequest } from './request.ts';

interface Reason {
  readonly why?: string;
  readonly by?: string;
}

/** Adds `GET` and `POST /revocations`, and `DELETE` of `/revocations/tokens/{digest}` and `/revocations/principals/{id}`. */
export function addRevocationRoutes(
  app: FastifyInstance,
  actions: RevocationActions,
  ages: Pick<Ages, 'revocations'>,
): void {
  app.get('/revocations', (_request, reply) =>
    orRefusal(withAge(reply, ages.revocations()), () => actions.list()),
  );
  app.post('/revocations', ({ body }, reply) =>
    orRefusal(reply, async () => {
      const made = await actions.revoke(readRevocationRequest(body));
      reply.code(201);
      return made;
    }),
  );
  app.delete<{ Params: { digest: string }; Querystring: Reason }>(
    '/revocations/tokens/:digest',
    ({ params: { digest }, query: { why, by } }, reply) =>
      orRefusal(reply, async () => actions.undoToken(digest, readReason(why, by))),
  );
  app.delete<{ Params: { id: string }; Querystring: Reason }>(
    '/revocations/principals/:id',
    ({ params: { id }, query: { why, by } }, reply) =>
      orRefusal(reply, async () => actions.undoPrincipal(id, readReason(why, by))),
  );
}
