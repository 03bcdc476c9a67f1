import type { Static } from 'typebox';
import type { Account, Principal } from '../../domain/caller.ts';
import { ConfigError } from '../problem.ts';
import type { Finding } from '../reader/check.ts';
import { nearest } from '../reader/messages.ts';
import { parse } from '../reader/parse.ts';
import { ID_FORMAT, ID_PATTERN, identitiesSchema } from './identities-schema.ts';

/** identities.yaml as the gateway uses it. Every id that it refers to is defined in it. */
export interface Identities {
  /** By token, or by `sha256:` followed by the lower-case hex digest of a token. */
  readonly tokens: ReadonlyMap<string, Principal>;
  /** By id, including principals without a token. */
  readonly principals: ReadonlyMap<string, Principal>;
  /** All Accounts that exist, by id. */
  readonly accounts: ReadonlyMap<string, Account>;
}

const ID = new RegExp(ID_PATTERN);

type File = Static<typeof identitiesSchema>;

/** Parses an identities file. Throws a ConfigError with every problem. */
export function parseIdentities(text: string, source: string): Identities {
  const parsed = parse(identitiesSchema, text, source);
  const { identities, findings } = toIdentities(parsed.value);
  if (findings.length > 0) throw new ConfigError(findings.map(parsed.place));
  return identities;
}

function toIdentities(file: File): { identities: Identities; findings: readonly Finding[] } {
  const findings: Finding[] = [...idFindings(file), ...tokenFindings(file)];
  const principals = new Map<string, Principal>();
  for (const [id, entry] of Object.entries(file.principals)) {
    const principal = toPrincipal(id, entry, file, findings);
    if (principal !== undefined) principals.set(id, principal);
  }
  const tokens = new Map<string, Principal>();
  for (const [token, id] of Object.entries(file.tokens)) {
    if (!Object.hasOwn(file.principals, id))
      findings.push(unknown('principal', id, ['tokens', token], file.principals));
    const principal = principals.get(id);
    if (principal !== undefined) tokens.set(normalised(token), principal);
  }
  return { identities: { tokens, principals, accounts: new Map(Object.entries(file.accounts)) }, findings };
}

function idFindings({ principals, accounts }: File): readonly Finding[] {
  return Object.entries({ principals, accounts }).flatMap(([section, entries]) =>
    Object.keys(entries)
      .filter((id) => !ID.test(id))
      .map((id) => ({ path: [section, id], message: `must be ${ID_FORMAT}` })),
  );
}

function tokenFindings({ tokens }: File): readonly Finding[] {
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

function normalised(token: string): string {
  return token.startsWith('sha256:') ? token.toLowerCase() : token;
}

function toPrincipal(
  id: string,
  entry: File['principals'][string],
  file: File,
  findings: Finding[],
): Principal | undefined {
  const path = ['principals', id];
  const { type, account, organization, actsFor } = entry;
  for (const [index, other] of actsFor.entries()) {
    if (!Object.hasOwn(file.accounts, other)) {
      findings.push(unknown('Account', other, [...path, 'actsFor', String(index)], file.accounts));
    }
  }
  if (account !== undefined && !Object.hasOwn(file.accounts, account)) {
    findings.push(unknown('Account', account, [...path, 'account'], file.accounts));
  }
  const wrong = ownershipProblem(entry);
  if (wrong !== undefined) findings.push({ path, message: wrong });
  if (account !== undefined) {
    const owned = { id, account, actsFor: new Set(actsFor) };
    return type === 'Person' ? { ...owned, type } : { ...owned, type };
  }
  return organization === undefined ? undefined : { id, type: 'ServiceAccount', organization };
}

function ownershipProblem({
  type,
  account,
  organization,
  actsFor,
}: File['principals'][string]): string | undefined {
  if (type === 'Person') {
    if (organization !== undefined) return 'a Person has an account, not an organization';
    return account === undefined ? 'a Person needs an account, its Principal Account' : undefined;
  }
  if ((account === undefined) === (organization === undefined)) {
    return 'a ServiceAccount needs either an account or an organization, not both';
  }
  if (organization !== undefined && actsFor.length > 0) {
    return 'a ServiceAccount of an Organization acts for all its Accounts and cannot have actsFor';
  }
  return undefined;
}

function unknown(
  noun: string,
  id: string,
  path: readonly string[],
  known: Readonly<Record<string, unknown>>,
): Finding {
  const suggestion = nearest(id, Object.keys(known));
  const hint =
    suggestion === undefined
      ? `add it to ${noun === 'Account' ? 'accounts' : 'principals'}`
      : `did you mean "${suggestion}"?`;
  return { path, message: `${noun} "${id}" is unknown`, hint };
}
