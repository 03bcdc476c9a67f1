import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/schema.ts';
import { type Call, toCall } from './call.ts';
import type { ContractOperation } from './contract.ts';
import { PlatformError } from './problems.ts';

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
  for (const { operationId, method, url, schema } of operations) {
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
        const { body, once } = answer;
        return reply.code(answer.status).send(once ? { ...(body as object), ...once } : body);
      },
    });
  }
  refuseOtherMethods(app, operations);
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** 405 for a path of the contract with a method that it does not define. */
function refuseOtherMethods(app: FastifyInstance, operations: readonly ContractOperation[]): void {
  for (const url of new Set(operations.map((operation) => operation.url))) {
    const served = operations.filter((operation) => operation.url === url).map(({ method }) => method);
    app.route({
      method: METHODS.filter((method) => !served.includes(method)),
      url,
      handler: (request, reply) => {
        reply.header('allow', [...served, ...(served.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', '));
        throw new PlatformError(405, 'MethodNotAllowed', `${request.method} is not served here.`);
      },
    });
  }
}
