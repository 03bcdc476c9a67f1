import type { RequestContext } from '../../src/stages/request-context.ts';
import { requestOf } from '../../test/fixtures/request-context.ts';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';

/** Admitted reads of the Accounts `acct_1` to `acct_N`, with as much of their context as usage is counted by. */
export class FinishedRequests {
  readonly #callers: readonly RequestContext['caller'][];
  /** One for all: in a gateway, too, what a request is counted by was written just before, and only its caller is old. */
  readonly #request = requestOf('acct_1', 'org_1');

  constructor(accounts: number) {
    this.#callers = Array.from({ length: accounts }, (_, index) => {
      const number = index + 1;
      return requestOf(`acct_${number}`, `org_${Math.ceil(number / ACCOUNTS_PER_ORGANIZATION)}`).caller;
    });
  }

  get accounts(): number {
    return this.#callers.length;
  }

  /** The request of one of the Accounts, in turn. To be used before the next call. */
  of(index: number): RequestContext {
    this.#request.caller = this.#callers[index % this.#callers.length];
    return this.#request;
  }
}
