import type { Account, Principal } from '../../domain/caller.ts';
import type { Directory, Lookup } from '../identity.ts';
import { type Loaded, LookupCache } from '../lookup-cache.ts';
import { Provider, type Reporting } from '../provider.ts';

export interface HttpDirectoryOptions extends Reporting {
  /** `{account}` stands for the id. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly timeoutMs: number;
  readonly freshMs: number;
  readonly refusedMs: number;
  readonly outageMs: number;
  readonly maxAccounts: number;
}

/** As an introspection provider's: see there. */
const BACKOFF = { tolerated: 2, firstMs: 250, longestMs: 5000 };

type Asker = Pick<Principal, 'id'>;

/** What may stand in a path without becoming another one: no id is `.` or `..`, none holds a slash. */
const ID = /^(?!\.{1,2}$)[\x21-\x7e]{1,256}$/;

/** Asks an endpoint about each Account: 200 with its Organization, or 404. */
export class HttpDirectory implements Directory {
  readonly #options: HttpDirectoryOptions;
  readonly #provider: Provider;
  readonly #cache: LookupCache<Account, Asker>;
  readonly #init: RequestInit;

  constructor(options: HttpDirectoryOptions) {
    this.#options = options;
    this.#provider = new Provider({ ...options, name: 'directory', backoff: BACKOFF, statuses: [200, 404] });
    this.#cache = new LookupCache({
      load: (asker: Asker, account) => this.#load(account, asker),
      maxKeys: options.maxAccounts,
    });
    const { token } = options;
    this.#init = {
      headers: {
        Accept: 'application/json',
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      },
    };
  }

  find(account: string, asker: Asker): Lookup<Account> {
    return ID.test(account) ? this.#cache.get(account, asker) : undefined;
  }

  async #load(account: string, { id }: Asker): Promise<Loaded<Account>> {
    const url = this.#options.url.replaceAll('{account}', () => encodeURIComponent(account));
    const answer = await this.#provider.ask({ url, init: this.#init, asker: id }, (body) => {
      if (!isAccount(body)) throw new Error('answered something that is no Account');
    });
    if (answer === 'unavailable') return 'unavailable';
    const { freshMs, refusedMs, outageMs } = this.#options;
    const nowMs = Date.now();
    if (answer.status === 404) return { value: undefined, freshUntilMs: nowMs + refusedMs };
    const { organization, organizationLimit } = answer.body as AccountAnswer;
    const value = {
      ...(typeof organization === 'string' ? { organization } : {}),
      ...(organizationLimit === false ? { organizationLimit } : {}),
    };
    return { value, freshUntilMs: nowMs + freshMs, usableUntilMs: nowMs + freshMs + outageMs };
  }
}

interface AccountAnswer {
  readonly organization?: string | null;
  readonly organizationLimit?: boolean;
}

/** Strict: an Organization that is misread is one whose limit is not kept. */
function isAccount(body: unknown): body is AccountAnswer {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  const { organization = null, organizationLimit = true } = body as Record<string, unknown>;
  const isOrganization = organization === null || (typeof organization === 'string' && ID.test(organization));
  return isOrganization && typeof organizationLimit === 'boolean';
}
