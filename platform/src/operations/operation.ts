import type { Selectable } from 'kysely';
import type { Tables } from '../database/schema.ts';

export type Operation = Selectable<Tables['operations']>;

/** How an operation ended (contract section 3 rule 3). */
export interface OperationOutcome {
  readonly status: 'Completed' | 'PartiallyCompleted' | 'Failed' | 'Cancelled';
  readonly result?: Readonly<Record<string, unknown>>;
  /** Present if the status is `Failed`. */
  readonly error?: { readonly code: string; readonly detail: string };
}

/** The AsyncOperation in the form that `GET /v3/platform/operations/{operationId}` returns. */
export function operationBody(operation: Operation): Record<string, unknown> {
  return {
    id: operation.id,
    type: operation.type,
    status: operation.status,
    ...(operation.external_id !== null && { externalId: operation.external_id }),
    accountId: operation.account_id,
    ...(operation.result && { result: operation.result }),
    ...(operation.error && { error: operation.error }),
    createdAt: operation.created_at.toISOString(),
    updatedAt: operation.updated_at.toISOString(),
    events: operation.events,
  };
}
