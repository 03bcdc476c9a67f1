import type { FastifyInstance, FastifyReply } from 'fastify';
import { isMapping } from '../../config/reader/schema-node.ts';
import { ActionRefused } from '../action.ts';
import { StoreUnavailable } from './fact-change.ts';

/** What an operator sends to change facts. */
export interface FactRequest {
  /** The last part of the path; empty for a path without one. */
  readonly id: string;
  readonly body: unknown;
  readonly query: unknown;
}

/** How the admin port lists and changes the facts of one kind. */
export interface FactApi {
  /** Where they are listed. */
  readonly path: string;
  /** What is listed, such as `The blocks`. */
  readonly title: string;
  /** False while the list was never read from Redis: it is unknown then, not empty. */
  readonly isRead: boolean;
  /** How long ago the list was read from Redis. */
  readonly ageSeconds: number;
  list(): Promise<readonly object[]>;
  readonly routes: readonly {
    readonly method: 'PUT' | 'POST' | 'DELETE';
    /** Such as `/blocks/accounts/:id`. */
    readonly path: string;
    /** Makes the change, and returns the answer. Rejects with an ActionRefused. */
    change(request: FactRequest): Promise<object>;
  }[];
}

/** Adds a GET of each list, which is a 503 while the list was never read, and the routes that change facts. */
export function addFactRoutes(app: FastifyInstance, apis: readonly FactApi[]): void {
  for (const api of apis) {
    app.get(api.path, (_request, reply) => {
      // RFC 9111 section 5.1.
      if (api.isRead) reply.header('Age', Math.floor(api.ageSeconds));
      return orRefusal(reply, async () => {
        refuseUnread(api);
        return api.list();
      });
    });
    for (const { method, path, change } of api.routes) {
      app.route<{ Params: { id?: string } }>({
        method,
        url: path,
        handler: ({ params: { id = '' }, body, query }, reply) =>
          orRefusal(reply, async () => {
            // What is removed is looked up in the list.
            if (method === 'DELETE') refuseUnread(api);
            const changed = await change({ id, body, query });
            if (method === 'POST') reply.code(201);
            return changed;
          }),
      });
    }
  }
}

function refuseUnread({ title, isRead }: FactApi): void {
  if (isRead) return;
  throw new StoreUnavailable(`${title} are in Redis, which could not be read since this replica started.`);
}

/** The result of an action, or the reason why it was refused: as a status, and JSON with `error`. */
export async function orRefusal(reply: FastifyReply, act: () => Promise<object>): Promise<object> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof ActionRefused) {
      return reply.code(error.status).send({ error: error.message, ...error.details });
    }
    throw error;
  }
}

/** The members of a request that may have them in its body or in its query. */
export function membersOf({ body, query }: FactRequest): Readonly<Record<string, unknown>> {
  return { ...(isMapping(body) ? body : {}), ...(isMapping(query) ? query : {}) };
}
