import type { FastifyRequest } from 'fastify';
import { PlatformError } from './problems.ts';

/** The principal and the target Account, as established by the gateway. */
export interface ActingCaller {
  readonly accountId: string;
  readonly organizationId: string | undefined;
  readonly principalId: string;
  /** The principal's id if it is a Person, undefined for a ServiceAccount. */
  readonly personId: string | undefined;
}

/** A request that matches the operation's schemas in openapi.yaml. */
export interface Call {
  readonly operationId: string;
  readonly caller: ActingCaller;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | number | undefined>>;
  readonly body: unknown;
  readonly idempotencyKey: string | undefined;
}

/** Reads the request. Throws a 401 if it lacks the headers that the gateway sets. */
export function toCall(request: FastifyRequest, operationId: string): Call {
  const accountId = headerOf(request, 'x-account-id');
  if (accountId === undefined) {
    throw new PlatformError(
      401,
      'Unauthenticated',
      'X-Account-Id is missing: call the platform through the gateway.',
    );
  }
  const principalId = headerOf(request, 'x-principal-id') ?? accountId;
  return {
    operationId,
    caller: {
      accountId,
      organizationId: headerOf(request, 'x-organization-id'),
      principalId,
      personId: headerOf(request, 'x-principal-type') === 'Person' ? principalId : undefined,
    },
    params: request.params as Call['params'],
    query: request.query as Call['query'],
    body: request.body ?? undefined,
    idempotencyKey: headerOf(request, 'idempotency-key'),
  };
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
