import type { Identities } from '../config/files/identities/parse-identities.ts';
import type { Awaitable } from '../domain/awaitable.ts';
import type { Principal } from '../domain/caller.ts';
import { presentedDigest } from '../domain/token-digest.ts';
import type { Revocations } from '../facts/revocations.ts';
import { planIn, startIn } from './claims.ts';
import { outcomeOf } from './identity-observer.ts';
import type { Authentication, Client, IdentitySource } from './identity-source.ts';
import { Provider, type Reporting } from './provider/provider.ts';
import { UnusableAnswer } from './provider/provider-answer.ts';
import type { StaticIdentities } from './static.ts';

interface ApiKeysOptions extends Reporting {
  /** `{digest}` is replaced by the hex SHA-256 of the key. */
  readonly url: string;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly revocations: Revocations;
}

/** The token syntax of RFC 6750 section 2.1, with limits on the length. A short key could be guessed from its digest. */
const KEY = /^[A-Za-z0-9\-._~+/]{16,512}={0,2}$/;

/** What a key looks like, its prefix included. */
export const KEY_FORM = '16 to 512 letters, digits or -._~+/, prefix included, and at most two = at the end';

/**
 * Authenticates the tokens of the identities file, and API keys that an endpoint looks up by their digest. A key belongs to
 * a principal of the file.
 *
 * The endpoint is called for every request, so that a revoked key fails at the next request on every replica. Requests that
 * arrive during a call for the same key share the next call. They cannot use the current one, because its answer may
 * predate their arrival.
 */
export class ApiKeys implements IdentitySource {
  readonly #options: ApiKeysOptions;
  readonly #file: StaticIdentities;
  readonly #provider: Provider;
  readonly #current = new Map<string, Promise<Authentication>>();
  readonly #next = new Map<string, Promise<Authentication>>();
  #identities: Identities;

  constructor(options: ApiKeysOptions, file: StaticIdentities, identities: Identities) {
    this.#options = options;
    this.#file = file;
    this.#identities = identities;
    this.#provider = new Provider({ ...options, name: 'api-keys', statuses: [200, 404] });
  }

  /** Replaces the principals and Accounts after a reload of the identities file. */
  replace(identities: Identities): void {
    this.#identities = identities;
  }

  principalOf(token: string, client?: Client): Awaitable<Authentication> {
    const isKey = token.startsWith(this.#options.prefix);
    if (!isKey || !KEY.test(token)) {
      const found = this.#file.principalOf(token, client);
      return isKey && found === 'unknown-token' ? 'malformed' : found;
    }
    const digest = presentedDigest(token, client?.lastDigest);
    const current = this.#current.get(digest);
    if (current === undefined) return this.#call(digest, client);
    const planned = this.#next.get(digest);
    if (planned !== undefined) return planned;
    const next = current.then(() => {
      this.#next.delete(digest);
      return this.#call(digest, client);
    });
    this.#next.set(digest, next);
    return next;
  }

  #call(digest: string, client: Client | undefined): Promise<Authentication> {
    const answer = this.#lookUp(digest, client).finally(() => this.#current.delete(digest));
    this.#current.set(digest, answer);
    return answer;
  }

  async #lookUp(digest: string, client: Client | undefined): Promise<Authentication> {
    const { url, observer } = this.#options;
    const hex = Buffer.from(digest, 'latin1').toString('hex');
    const request = {
      url: url.replaceAll('{digest}', hex),
      init: {},
      requester: client?.clientNetwork ?? '',
      question: digest,
    };
    const answer = await this.#provider.call(request, (body) => {
      const wrong = wrongMember(body);
      if (wrong !== undefined) throw new UnusableAnswer(`the answer has no valid "${wrong}"`);
    });
    if (answer === 'unavailable') {
      observer.identified('api-keys', 'unavailable', false);
      return 'unavailable';
    }
    const { revocations } = this.#options;
    const found =
      answer.status === 200
        ? this.#ownerOf(digest, answer.body as KeyOwner)
        : (revocations.refuse([digest]) ?? 'unknown-token');
    observer.identified('api-keys', outcomeOf(found), false);
    return found;
  }

  #ownerOf(digest: string, owner: KeyOwner): Authentication {
    const { principal: id, issuedAt, account, plan, periodStartsOn } = owner;
    const issuedAtMs = isAbsent(issuedAt) ? undefined : Date.parse(issuedAt);
    const revoked = this.#options.revocations.refuse([digest], id, issuedAtMs);
    if (revoked !== undefined) return revoked;
    const principal = this.#identities.principals.get(id);
    if (principal === undefined) {
      this.#options.log.warn('an API key belongs to a principal that is not in the identities file');
      return 'no-account';
    }
    const owned = { ...principal, ...planIn(plan), ...startIn(periodStartsOn) };
    return isAbsent(account) ? owned : this.#keptTo(owned, account);
  }

  /** The principal as a key lets it act: for one Account alone if the key belongs to another than the principal's own. */
  #keptTo(principal: Principal, account: string): Principal | 'no-account' {
    if (account === principal.account) return principal;
    const mayActFor =
      principal.account === undefined
        ? this.#identities.accounts.get(account)?.organization === principal.organization
        : principal.actsFor.has(account);
    if (!mayActFor) return 'no-account';
    return { ...principal, account, actsFor: new Set(), home: { account: principal.account } };
  }
}

/** The URL for looking up the owner of a key. A path is relative to the upstream's URL. */
export function keyOwnersUrl(url: string, upstreamUrl: string): string {
  // `new URL` would escape the braces of the placeholder.
  return url.startsWith('/') ? `${upstreamUrl.replace(/(?<!\/)\/+$/, '')}${url}` : url;
}

/** A member that is null counts as absent. */
interface KeyOwner {
  readonly principal: string;
  /** When the key was issued. A principal's revocation does not apply to keys issued after it. */
  readonly issuedAt?: string | null;
  /** The Account that the key belongs to. */
  readonly account?: string | null;
  /** The plan of its Account. */
  readonly plan?: unknown;
  /** The day on which the months of its Account begin. */
  readonly periodStartsOn?: unknown;
}

/** The member that keeps a body from being a KeyOwner. */
function wrongMember(body: unknown): keyof KeyOwner | undefined {
  const { principal, issuedAt, account } = (body ?? {}) as Record<string, unknown>;
  if (typeof principal !== 'string') return 'principal';
  const isDate = typeof issuedAt === 'string' && !Number.isNaN(Date.parse(issuedAt));
  if (!isAbsent(issuedAt) && !isDate) return 'issuedAt';
  return isAbsent(account) || typeof account === 'string' ? undefined : 'account';
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}
