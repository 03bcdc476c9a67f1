/** What the gateway and the process that parses an identities file (parse-child.ts) send each other. */
import type { Account, Principal } from '../../../domain/caller.ts';
import { TokenTable } from '../../../domain/token-digest.ts';
import { ConfigError, type Problem, problemsOf } from '../../problem.ts';
import { type Identities, NOBODY, parseIdentities, sharing } from './parse-identities.ts';

/** To the process. */
export interface IdentitiesTask {
  readonly text: string;
  /** The name of the file, for messages. */
  readonly file: string;
}

/** A principal. Its Account, and the others that it acts for, are places among the Accounts, so that each id is one string in the gateway too. */
type SlicedPrincipal = readonly [
  id: string,
  type: Principal['type'],
  account: number | undefined,
  organization: string | undefined,
  actsFor: readonly number[],
];

/** From the process: Accounts first, then principals, then tokens, each in many slices. */
export type Slice =
  | { readonly accounts: readonly (readonly [id: string, account: Account])[] }
  | { readonly principals: readonly SlicedPrincipal[] }
  /** The principal of each is named by its place. `most` is the number of all tokens. */
  | { readonly tokens: readonly (readonly [digest: string, principal: number])[]; readonly most: number }
  /** The last one: the file is whole, or it has these problems. */
  | { readonly problems: readonly Problem[] };

/** Entries of a slice. Receiving one takes about a millisecond. */
const ENTRIES = 500;

/** The parsed file in slices. */
export function* slicesOf({ text, file }: IdentitiesTask): Generator<Slice> {
  const parsed = parsedOrProblems(text, file);
  if ('problems' in parsed) return yield parsed;
  const { accounts, principals, tokens } = parsed;
  for (const slice of inParts(accounts)) yield { accounts: slice };
  const placeOfAccount = placesOf(accounts.keys());
  for (const slice of inParts(principals.values())) {
    yield { principals: slice.map((principal) => slicedPrincipal(principal, placeOfAccount)) };
  }
  const placeOfPrincipal = placesOf(principals.keys());
  for (const slice of inParts(tokens)) {
    yield { tokens: slice.map(([digest, { id }]) => [digest, placeOfPrincipal(id)]), most: tokens.size };
  }
  yield { problems: [] };
}

/** Puts the slices of a file together. */
export class SlicedIdentities {
  readonly #accounts = new Map<string, Account>();
  readonly #principals = new Map<string, Principal>();
  readonly #accountIds: string[] = [];
  readonly #principalsByPlace: Principal[] = [];
  readonly #share = sharing();
  #tokens = new TokenTable(0);

  /** @returns the identities after the last slice. @throws ConfigError with the problems of the file */
  add(slice: Slice): Identities | undefined {
    if ('accounts' in slice) for (const [id, account] of slice.accounts) this.#addAccount(id, account);
    else if ('principals' in slice) for (const one of slice.principals) this.#addPrincipal(one);
    else if ('tokens' in slice) this.#addTokens(slice.tokens, slice.most);
    else if (slice.problems.length > 0) throw new ConfigError(slice.problems);
    else return { accounts: this.#accounts, principals: this.#principals, tokens: this.#tokens };
    return undefined;
  }

  #addAccount(id: string, account: Account): void {
    this.#accountIds.push(id);
    this.#accounts.set(id, this.#share(account));
  }

  #addPrincipal([id, type, place, organization, actsFor]: SlicedPrincipal): void {
    const others = actsFor.length === 0 ? NOBODY : new Set(actsFor.map((other) => this.#idAt(other)));
    const principal: Principal =
      organization === undefined
        ? { id, type, account: this.#idAt(place), actsFor: others }
        : { id, type: 'ServiceAccount', organization };
    this.#principals.set(id, principal);
    this.#principalsByPlace.push(principal);
  }

  #addTokens(tokens: readonly (readonly [string, number])[], most: number): void {
    if (this.#tokens.size === 0) this.#tokens = new TokenTable(most);
    for (const [digest, place] of tokens) {
      const principal = this.#principalsByPlace[place];
      if (principal !== undefined) this.#tokens.add(digest, principal);
    }
  }

  #idAt(place = -1): string {
    const id = this.#accountIds[place];
    if (id === undefined) throw new Error('a principal has an Account that was not sent before');
    return id;
  }
}

function parsedOrProblems(
  text: string,
  file: string,
): Identities | { readonly problems: readonly Problem[] } {
  try {
    return parseIdentities(text, file);
  } catch (error) {
    return { problems: problemsOf(error) };
  }
}

function slicedPrincipal(principal: Principal, placeOf: (account: string) => number): SlicedPrincipal {
  const { id, type } = principal;
  if (principal.account === undefined) return [id, type, undefined, principal.organization, []];
  return [id, type, placeOf(principal.account), undefined, [...principal.actsFor].map(placeOf)];
}

/** A function that returns the place of an id among these. */
function placesOf(ids: Iterable<string>): (id: string) => number {
  const places = new Map([...ids].map((id, place) => [id, place]));
  return (id) => places.get(id) ?? -1;
}

function* inParts<T>(all: Iterable<T>): Generator<readonly T[]> {
  let part: T[] = [];
  for (const one of all) {
    part.push(one);
    if (part.length < ENTRIES) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}
