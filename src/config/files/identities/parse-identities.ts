import { type Static, Type } from 'typebox';
import type { Account, Principal } from '../../../domain/caller.ts';
import { ID_FORMAT, ID_PATTERN, isId } from '../../../domain/caller.ts';
import { LAST_DAY } from '../../../domain/limits/calendar.ts';
import type { OverrideSection } from '../../../domain/limits/scopes.ts';
import { digestOf, digestOfHex, TokenTable } from '../../../domain/token-digest.ts';
import { parseAs } from '../../reader/parse-file.ts';
import type { Finding } from '../../reader/schema-check.ts';
import { didYouMean } from '../../reader/value-messages.ts';
import { closed, list, literals } from '../../settings/section.ts';

/** identities.yaml as the gateway uses it. Every id that it refers to is defined in it. */
export interface Identities {
  readonly tokens: TokenTable;
  /** By id, including principals without a token. */
  readonly principals: ReadonlyMap<string, Principal>;
  /** All Accounts that exist, by id. */
  readonly accounts: ReadonlyMap<string, Account>;
}

/** The Accounts, Organizations or principals of these identities. Undefined for addresses, which are listed nowhere. */
export function ownersIn(
  section: OverrideSection,
  all: readonly Identities[],
): ReadonlySet<string> | undefined {
  if (section === 'addresses') return undefined;
  if (section === 'principals') return new Set(all.flatMap(({ principals }) => [...principals.keys()]));
  if (section === 'accounts') return new Set(all.flatMap(({ accounts }) => [...accounts.keys()]));
  const owned = all.flatMap(({ accounts, principals }) => [...accounts.values(), ...principals.values()]);
  return new Set(
    owned.flatMap((one) => ('organization' in one && one.organization ? [one.organization] : [])),
  );
}

type IdentitiesContent = Static<typeof identitiesSchema>;

/** Parses an identities file. Throws a ConfigError with every problem. */
export function parseIdentities(text: string, source: string): Identities {
  return parseAs(identitiesSchema, text, source, toIdentities);
}

function toIdentities(file: IdentitiesContent, findings: Finding[]): Identities {
  findings.push(...idFindings(file, ['principals', 'accounts']), ...tokenFindings(file));
  const accounts = sharedAccounts(file.accounts);
  const ids = new Map([...accounts.keys()].map((id) => [id, id]));
  const principals = new Map<string, Principal>();
  for (const [id, entry] of Object.entries(file.principals)) {
    const principal = toPrincipal(id, entry, { file, ids }, findings);
    if (principal !== undefined) principals.set(id, principal);
  }
  const written = Object.entries(file.tokens);
  const tokens = new TokenTable(written.length);
  for (const [token, id] of written) {
    if (!Object.hasOwn(file.principals, id)) findings.push(unknownPrincipal(token, id, file, findings));
    const principal = principals.get(id);
    if (principal === undefined) continue;
    const digest = digestOfWritten(token);
    const other = tokens.get(digest);
    if (other === undefined) tokens.add(digest, principal);
    else if (other !== principal) findings.push({ path: ['tokens', token], message: TWICE });
  }
  return { tokens, principals, accounts };
}

/** Nobody could say whose token it is. */
const TWICE =
  'is the same token as an earlier entry, which names another principal: a token may be written as it is and as its digest';

function unknownPrincipal(
  token: string,
  id: string,
  { principals }: IdentitiesContent,
  findings: readonly Finding[],
): Finding {
  const path = ['tokens', token];
  if (!Object.hasOwn(principals, token)) return unknown('principal', id, path, principals, findings);
  // What is named like the principal is most likely the token, and is not shown.
  return { path, message: 'is the id of a principal: write the token first, and then its principal' };
}

/** Accounts with the same members are one object, which the Accounts of an Organization mostly are. */
function sharedAccounts(all: IdentitiesContent['accounts']): ReadonlyMap<string, Account> {
  const share = sharing();
  return new Map(Object.entries(all).map(([id, account]) => [id, share(account)]));
}

/** A function that returns the first of all equal Accounts that it was given. */
export function sharing(): (account: Account) => Account {
  const shared = new Map<string, Account>();
  return (account) => {
    const { organization = '', plan = '', organizationLimit = '', periodStartsOn = '' } = account;
    // Ids have no spaces.
    const members = `${organization} ${organizationLimit} ${plan} ${periodStartsOn}`;
    const known = shared.get(members);
    if (known === undefined) shared.set(members, account);
    return known ?? account;
  };
}

/** Of all principals that act for no other Account. */
export const NOBODY: ReadonlySet<string> = new Set();

/** The keys of these sections that are no ids. */
export function idFindings<Section extends string>(
  file: Readonly<Record<Section, object>>,
  sections: readonly Section[],
): readonly Finding[] {
  return sections.flatMap((section) =>
    Object.keys(file[section])
      .filter((id) => !isId(id))
      .map((id) => ({ path: [section, id], message: `must be ${ID_FORMAT}` })),
  );
}

function tokenFindings({ tokens }: IdentitiesContent): readonly Finding[] {
  return Object.keys(tokens).flatMap((token) => {
    const message = tokenProblem(token);
    return message === undefined ? [] : [{ path: ['tokens', token], message }];
  });
}

function tokenProblem(token: string): string | undefined {
  if (/\s/.test(token)) return 'a token must not contain spaces';
  if (!token.startsWith('sha256:') || /^sha256:[0-9a-f]{64}$/i.test(token)) return undefined;
  return 'must be sha256: followed by 64 hexadecimal digits';
}

function digestOfWritten(token: string): string {
  return token.startsWith('sha256:') ? digestOfHex(token.slice('sha256:'.length)) : digestOf(token);
}

function toPrincipal(
  id: string,
  entry: IdentitiesContent['principals'][string],
  { file, ids }: { readonly file: IdentitiesContent; readonly ids: ReadonlyMap<string, string> },
  findings: Finding[],
): Principal | undefined {
  const path = ['principals', id];
  const { type, account, organization, actsFor } = entry;
  for (const [index, other] of actsFor.entries()) {
    if (!Object.hasOwn(file.accounts, other)) {
      findings.push(unknown('Account', other, [...path, 'actsFor', String(index)], file.accounts, findings));
    }
  }
  if (account !== undefined && !Object.hasOwn(file.accounts, account)) {
    findings.push(unknown('Account', account, [...path, 'account'], file.accounts, findings));
  }
  const wrong = ownershipProblem(entry);
  if (wrong !== undefined) findings.push({ path, message: wrong });
  if (account !== undefined) {
    // One string for each Account, so that a lookup compares two references.
    const own = ids.get(account) ?? account;
    return { id, type, account: own, actsFor: actsFor.length === 0 ? NOBODY : new Set(actsFor) };
  }
  return organization === undefined ? undefined : { id, type: 'ServiceAccount', organization };
}

function ownershipProblem({
  type,
  account,
  organization,
  actsFor,
}: IdentitiesContent['principals'][string]): string | undefined {
  if (type === 'Person') {
    if (organization !== undefined) return 'a Person has an account, not an organization';
    return account === undefined ? 'a Person needs an account, its Principal Account' : undefined;
  }
  if (account !== undefined && organization !== undefined)
    return 'a ServiceAccount has either an account or an organization, not both';
  if (account === undefined && organization === undefined)
    return 'has no owner: a ServiceAccount needs an account, which pays for it, or an organization';
  if (organization !== undefined && actsFor.length > 0) {
    return 'a ServiceAccount of an Organization acts for all its Accounts and cannot have actsFor';
  }
  return undefined;
}

/** Problems of a file after which no similar ids are looked for, because this reads all ids. */
const MOST_SUGGESTIONS = 20;

function unknown(
  noun: string,
  id: string,
  path: readonly string[],
  known: Readonly<Record<string, unknown>>,
  findings: readonly Finding[],
): Finding {
  // With a whole section missing, there are as many of them as entries.
  const similar = findings.length < MOST_SUGGESTIONS ? didYouMean(id, Object.keys(known)) : undefined;
  const hint = similar ?? `add it to ${noun === 'Account' ? 'accounts' : 'principals'}`;
  return { path, message: `${noun} "${id}" is unknown`, hint };
}

const id = (description: string) => Type.String({ description, pattern: ID_PATTERN, expects: ID_FORMAT });

const principal = closed({
  type: literals(['Person', 'ServiceAccount'], { description: 'Type of the principal.' }),
  account: Type.Optional(id('Its own Account: the target Account of a request that does not name one.')),
  organization: Type.Optional(
    id('The Organization that owns it, instead of `account`. ServiceAccounts only.'),
  ),
  actsFor: list('Other Accounts that it may act for.', id('An Account.'), {
    expects: 'a list of Account ids',
  }),
});

const account = closed({
  organization: Type.Optional(id('The Organization that it belongs to.')),
  plan: Type.Optional(id('Its plan in the limits file, unless that file assigns another.')),
  periodStartsOn: Type.Optional(
    Type.Integer({
      description: 'The day on which its months begin, unless the limits file names another.',
      minimum: 1,
      maximum: LAST_DAY,
    }),
  ),
  organizationLimit: Type.Optional(
    Type.Boolean({
      description: "Whether its requests are also charged to its Organization's buckets. Default: true.",
    }),
  ),
});

/** identities.yaml: tokens, principals, and the Organization of each Account. */
export const identitiesSchema = closed({
  tokens: Type.Record(Type.String(), id('A principal.'), {
    description: 'Maps a bearer token, or `sha256:` followed by its hex digest, to the id of its principal.',
    default: {},
    secret: true,
  }),
  principals: Type.Record(Type.String(), principal, { description: 'Principals by id.', default: {} }),
  accounts: Type.Record(Type.String(), account, { description: 'Accounts by id.', default: {} }),
});
