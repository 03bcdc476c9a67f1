import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/schema.ts';
import { type Call, toCall } from './call.ts';
import type { ContractOperation } from './contract.ts';

export interface Answer {
  readonly status: number;
  /** JSON. Absent for a 204. */
  readonly body?: unknown;
  /** Members of the first response only. They are not stored with the Idempotency-Key. */
  readonly once?: Readonly<Record<string, string>>;
  /** The response was stored for an earlier request with the same Idempotency-Key. */
  readonly isReplayed?: boolean;
}

/** Serves one operation. `db` is the transaction of a write. */
export type Handler = (call: Call, db: Database) => Promise<Answer> | Answer;

/** Handlers by operationId. */
export type Handlers = Readonly<Record<string, Handler>>;

/**
 * Serves every operation of the contract with the handler for its operationId. An operation without a handler, or a
 * handler without an operation, is an error at start-up, so that the two stay in step.
 */
export function bindContract(
  app: FastifyInstance,
  operations: readonly ContractOperation[],
  handlers: Handlers,
  db: Database,
  runWrite: (call: Call, handler: Handler) => Promise<Answer>,
): void {
  const known = new Set(operations.map((operation) => operation.operationId));
  const stray = Object.keys(handlers).find((id) => !known.has(id));
  if (stray)
    throw new Error(`openapi.yaml has no operation "${stray}", but the platform has a handler for it.`);
  for (const { operationId, method, url, schema, showsSecret } of operations) {
    const handler = handlers[operationId];
    if (!handler)
      throw new Error(`The platform has no handler for the operation "${operationId}" of openapi.yaml.`);
    app.route({
      method,
      url,
      schema,
      handler: async (request, reply) => {
        const call = toCall(request, operationId);
        const answer = await (method === 'GET' ? handler(call, db) : runWrite(call, handler));
        if (answer.isReplayed) reply.header('idempotency-replayed', 'true');
        if (showsSecret) reply.header('cache-control', 'no-store');
        const { body, once } = answer;
        return reply.code(answer.status).send(once ? { ...(body as object), ...once } : body);
      },
    });
  }
}
