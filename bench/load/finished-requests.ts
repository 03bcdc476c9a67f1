import type { Admitted, Operation, RequestContext } from '../../src/stages/request-context.ts';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';

const READ: Operation = { id: 'listPayees', kind: 'read', cost: 1, access: 'caller', listed: true };
const ADMITTED: Admitted = {
  outcome: 'admitted',
  policy: '',
  rateLimit: '',
  nearLimit: undefined,
  shadowDenied: undefined,
};

/** An admitted read of each of the Accounts `acct_1` to `acct_N`, with as much of its context as usage is counted by. */
export function finishedRequests(accounts: number): readonly RequestContext[] {
  return Array.from({ length: accounts }, (_, index) => {
    const number = index + 1;
    const account = `acct_${number}`;
    const organization = `org_${Math.ceil(number / ACCOUNTS_PER_ORGANIZATION)}`;
    const principal = {
      id: `svc_${number}`,
      type: 'ServiceAccount',
      account,
      actsFor: new Set<string>(),
    } as const;
    const caller = { principal, account, organization, hasOrganizationLimit: true, hashTag: organization };
    const context: Partial<RequestContext> = { operation: READ, caller, charged: ADMITTED };
    return context as RequestContext;
  });
}
