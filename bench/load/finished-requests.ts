import type { Caller } from '../../src/domain/caller.ts';
import { type Admitted, type Operation, RequestContext } from '../../src/stages/request-context.ts';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';

const READ: Operation = { id: 'listPayees', kind: 'read', cost: 1, access: 'caller', listed: true };
const ADMITTED: Admitted = {
  outcome: 'admitted',
  policy: '',
  rateLimit: '',
  nearLimit: undefined,
  shadowDenied: undefined,
};

/** Admitted reads of the Accounts `acct_1` to `acct_N`, with as much of their context as usage is counted by. */
export class FinishedRequests {
  readonly accounts: number;
  readonly #callers: readonly Caller[];
  /** One for all: in a gateway, too, what a request is counted by was written just before, and only its caller is old. */
  readonly #request = new RequestContext(
    { field: () => undefined, valuesOf: () => [] },
    'GET',
    '/v3/payments/payees',
  );

  constructor(accounts: number) {
    this.accounts = accounts;
    this.#callers = Array.from({ length: accounts }, (_, index) => callerOf(index + 1));
    Object.assign(this.#request, { operation: READ, charged: ADMITTED });
  }

  /** The next of the Accounts in turn. To be used before the next call. */
  of(index: number): RequestContext {
    this.#request.caller = this.#callers[index % this.accounts];
    return this.#request;
  }
}

function callerOf(number: number): Caller {
  const account = `acct_${number}`;
  const organization = `org_${Math.ceil(number / ACCOUNTS_PER_ORGANIZATION)}`;
  const principal = {
    id: `svc_${number}`,
    type: 'ServiceAccount',
    account,
    actsFor: new Set<string>(),
  } as const;
  return { principal, account, organization, hasOrganizationLimit: true, hashTag: organization };
}
