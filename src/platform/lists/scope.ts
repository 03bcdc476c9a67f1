import type { ExpressionBuilder, ExpressionWrapper, SqlBool } from 'kysely';
import type { Tables } from '../database/schema.ts';
import type { Call } from '../http/call.ts';

/** Which resources of a kind a caller's list holds. */
export type ListScope = (
  where: ExpressionBuilder<Tables, 'resources'>,
  call: Call,
) => ExpressionWrapper<Tables, 'resources', SqlBool>;

export const ofAccount: ListScope = (where, call) => where('account_id', '=', call.caller.accountId);
export const ofPerson: ListScope = (where, call) => where('person_id', '=', call.caller.principalId);
/** The acting Account, and with an Organization every Account of it. */
export const ofOrganization: ListScope = (where, call) =>
  where.or([
    where('account_id', '=', call.caller.accountId),
    where('organization_id', '=', call.caller.organizationId ?? ''),
  ]);
