import type { Awaitable } from '../../domain/awaitable.ts';
import type { Account } from '../../domain/caller.ts';
import { planIn, startIn } from '../claims.ts';
import type { Directory, FoundAccount } from '../identity-source.ts';
import { type LoadedKey, LookupCache } from '../lookup-cache.ts';
import { Provider, type Reporting } from '../provider/provider.ts';
import { UnusableAnswer } from '../provider/provider-answer.ts';

interface HttpDirectoryOptions extends Reporting {
  /** `{account}` is replaced by the id of the Account. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly timeoutMs: number;
  readonly freshMs: number;
  readonly refusedMs: number;
  readonly outageMs: number;
  readonly maxAccounts: number;
}

/** Ids that are safe as a path segment. `.` and `..` are excluded; a slash is percent-encoded. */
const ID = /^(?!\.{1,2}$)[\x21-\x7e]{1,256}$/;

/** Looks up each Account at an HTTP endpoint, which answers 200 with the Organization, or 404. */
export class HttpDirectory implements Directory {
  readonly #options: HttpDirectoryOptions;
  readonly #provider: Provider;
  readonly #cache: LookupCache<Account, string>;
  readonly #init: RequestInit;

  constructor(options: HttpDirectoryOptions) {
    this.#options = options;
    this.#provider = new Provider({ ...options, name: 'directory', statuses: [200, 404] });
    this.#cache = new LookupCache(options.maxAccounts, (requester: string, account) =>
      this.#load(account, requester),
    );
    const { token } = options;
    this.#init = {
      headers: {
        Accept: 'application/json',
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      },
    };
  }

  find(account: string, { id }: { readonly id: string }): Awaitable<FoundAccount> {
    return ID.test(account) ? this.#cache.get(account, id) : undefined;
  }

  async #load(account: string, requester: string): Promise<LoadedKey<Account>> {
    const url = this.#options.url.replaceAll('{account}', () => encodeURIComponent(account));
    const request = { url, init: this.#init, requester, question: account };
    const answer = await this.#provider.call(request, (body) => {
      if (!isAccount(body)) throw new UnusableAnswer('the answer is not an Account');
    });
    if (answer === 'unavailable') return 'unavailable';
    const { freshMs, refusedMs, outageMs } = this.#options;
    if (answer.status === 404) return { miss: undefined, freshForMs: refusedMs };
    const { organization, organizationLimit, plan, periodStartsOn } = answer.body as AccountAnswer;
    const value = {
      ...(typeof organization === 'string' ? { organization } : {}),
      ...(organizationLimit === false ? { organizationLimit } : {}),
      ...planIn(plan),
      ...startIn(periodStartsOn),
    };
    return { value, freshForMs: freshMs, usableForMs: freshMs + outageMs };
  }
}

interface AccountAnswer {
  readonly organization?: string | null;
  readonly organizationLimit?: boolean;
  readonly plan?: unknown;
  readonly periodStartsOn?: unknown;
}

/** Strict, because an Organization that is misread would escape its limit. */
function isAccount(body: unknown): body is AccountAnswer {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  const { organization = null, organizationLimit = true } = body as Record<string, unknown>;
  const isOrganization = organization === null || (typeof organization === 'string' && ID.test(organization));
  return isOrganization && typeof organizationLimit === 'boolean';
}
