import { foldName } from '../domain/field-name.ts';
import type { Directory, IdentitySource } from '../identity/identity.ts';

/** A credential that is accepted besides a bearer token. */
export interface Credential {
  /** The header field with an API key; undefined for the user name of `Authorization: Basic`. */
  readonly field: string | undefined;
  /** Whether the upstream receives it. */
  readonly forward: boolean;
  readonly source: IdentitySource;
  readonly directory: Directory;
}

/**
 * The values of a field in a flat list, in order. A field under another spelling (`X_API_Key`) is read as well: an upstream could
 * take it for the one that was verified.
 */
export function valuesUnderAnySpelling(fields: readonly string[], name: string): readonly string[] {
  const folded = foldName(name);
  return fields.filter((_, index) => index % 2 === 1 && foldName(fields[index - 1] ?? '') === folded);
}

/** Contract section 5. The scheme may be in any case (RFC 9110 section 11.1); exactly one space follows. */
const SCHEME = /^Bearer /i;
const SCHEME_LENGTH = 'Bearer '.length;

/** The token of an Authorization header; undefined if its scheme is another one. */
export function bearerToken(authorization: string): string | undefined {
  return SCHEME.test(authorization) ? authorization.slice(SCHEME_LENGTH) : undefined;
}

/** Spells the scheme `Bearer` in a flat list of fields, for upstreams that compare its case. */
export function spellBearer(fields: string[]): void {
  for (let index = 0; index < fields.length; index += 2) {
    if (fields[index]?.toLowerCase() !== 'authorization') continue;
    const token = bearerToken(fields[index + 1] ?? '');
    if (token !== undefined) fields[index + 1] = `Bearer ${token}`;
  }
}

/** The user name of Basic credentials (RFC 7617); undefined for another scheme, or without a user name. */
export function basicUser(authorization: string): string | undefined {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? [];
  const [user = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 1);
  return user === '' ? undefined : user;
}

/** Removes the credentials that the upstream should not receive from a flat list of fields. */
export function withoutCredentials(fields: string[], credentials: readonly Credential[]): string[] {
  const dropped = credentials.filter(({ forward }) => !forward);
  if (dropped.length === 0) return fields;
  const names = new Set(dropped.map(({ field }) => foldName(field ?? '')));
  const dropsBasic = dropped.some(({ field }) => field === undefined);
  const isDropped = (name: string, value: string) =>
    names.has(foldName(name)) ||
    (dropsBasic && name.toLowerCase() === 'authorization' && basicUser(value) !== undefined);
  return fields.filter((_, index) => {
    const at = index - (index % 2);
    return !isDropped(fields[at] ?? '', fields[at + 1] ?? '');
  });
}
