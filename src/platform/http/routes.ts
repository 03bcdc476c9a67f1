import type { FastifyInstance } from 'fastify';
import { type Call, toCall } from './call.ts';
import type { ContractOperation } from './contract.ts';

export interface Answer {
  readonly status: number;
  /** JSON; absent for 204. */
  readonly body?: unknown;
}

export type Handler = (call: Call) => Promise<Answer> | Answer;

/** Handlers by operationId. */
export type Handlers = Readonly<Record<string, Handler>>;

/**
 * Serves every operation of the contract by the handler of its operationId.
 * An operation without a handler, or a handler without an operation, stops the start: the two cannot drift apart.
 */
export function bindContract(
  app: FastifyInstance,
  operations: readonly ContractOperation[],
  handlers: Handlers,
): void {
  const known = new Set(operations.map((operation) => operation.operationId));
  const stray = Object.keys(handlers).find((id) => !known.has(id));
  if (stray)
    throw new Error(`openapi.yaml has no operation "${stray}", but the platform has a handler for it.`);
  for (const { operationId, method, url, schema } of operations) {
    const handler = handlers[operationId];
    if (!handler)
      throw new Error(`The platform has no handler for the operation "${operationId}" of openapi.yaml.`);
    app.route({
      method,
      url,
      schema,
      handler: async (request, reply) => {
        const answer = await handler(toCall(request, operationId));
        return reply.code(answer.status).send(answer.body);
      },
    });
  }
}
