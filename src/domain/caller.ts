/** Who sends requests, and for which Account. */

/** An Account, as far as limits depend on it. */
export interface Account {
  readonly organization?: string;
  /** False where the limits of its Organization do not apply to it. */
  readonly organizationLimit?: boolean;
  /** The plan that its limits come from, unless the limits file assigns another. */
  readonly plan?: string;
  /** The day on which its months begin, unless the limits file names another. */
  readonly periodStartsOn?: number;
}

/** Who sent the request, proven by its token. */
export type Principal = {
  readonly id: string;
  /** The plan that the token names: of its own Account, or of every Account of its Organization. */
  readonly plan?: string;
  /** The day on which the months of these Accounts begin, by the token. */
  readonly periodStartsOn?: number;
  /** The Accounts in the token's claims, for a directory of claims. */
  readonly claimedAccounts?: ReadonlyMap<string, Account>;
  /** What it has of its own, where its key belongs to another Account. */
  readonly home?: {
    /** Undefined for a service of an Organization. */
    readonly account: string | undefined;
    /** What the key says is of the key's Account. */
    readonly plan?: undefined;
    readonly periodStartsOn?: undefined;
    /** Whether it stands for what a log does not say. It decides nothing but months, because the principal may belong to an Organization. */
    readonly isGuess?: true;
  };
} & (
  | {
      /** A Person, or a ServiceAccount owned by an Account. */
      readonly type: 'Person' | 'ServiceAccount';
      /** The Principal Account: charged when no target Account is named. */
      readonly account: string;
      /** Further Accounts that this principal may name in `X-Service-Account`. */
      readonly actsFor: ReadonlySet<string>;
    }
  | {
      /** A ServiceAccount owned by an Organization: it has no Account of its own and must name one. */
      readonly type: 'ServiceAccount';
      readonly account?: undefined;
      readonly organization: string;
    }
);

/** A principal, and the target Account that it is authorised to act for. */
export interface Caller {
  readonly principal: Principal;
  readonly account: string;
  /** The Organization of the target Account, where it has one. */
  readonly organization: string | undefined;
  /** Whether the request is also charged to that Organization. */
  readonly hasOrganizationLimit: boolean;
  /** The plan of the target Account, by the token or the directory; the limits file may assign another. */
  readonly plan?: string | undefined;
  /** The day on which the months of the target Account begin, likewise. */
  readonly periodStartsOn?: number | undefined;
  /**
   * The hash tag of all keys that this request charges: an Organization, or an Account that has none. For a
   * Person-only operation it is the Principal Account's, so that a Person has one bucket for all Accounts it acts for.
   */
  readonly hashTag: string;
  readonly address?: undefined;
}

/** The client of a public operation, of whom nothing but the address is known. */
export interface PublicClient {
  /** An IPv4 address, or the /64 network of an IPv6 address: see network.ts. */
  readonly address: string;
  /** The address as well: an address bucket is charged alone, so it needs no slot in common with others. */
  readonly hashTag: string;
  readonly principal?: undefined;
  readonly account?: undefined;
  readonly organization?: undefined;
  readonly hasOrganizationLimit?: undefined;
  readonly plan?: undefined;
  readonly periodStartsOn?: undefined;
}

/** Whom a request is charged to. */
export type Payer = Caller | PublicClient;

/** The most characters of an id. */
export const LONGEST_ID = 256;

/**
 * Ids of Accounts, Organizations and principals: they can be sent upstream unencoded in X-Account-Id, and written to logs and
 * terminals. None has a space or a control character.
 */
export const ID_PATTERN = `^[\\x21-\\x7e]{1,${LONGEST_ID}}$`;
export const ID_FORMAT = `an id: printable ASCII without spaces, at most ${LONGEST_ID} characters`;

const ID = new RegExp(ID_PATTERN);

export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}
