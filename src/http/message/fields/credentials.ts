import { foldName } from '../../../domain/field-name.ts';
import type { FieldName } from '../head/field-names.ts';
import type { FieldSection } from '../head/field-section.ts';

/** Where a credential besides a bearer token is found. */
export interface CredentialField {
  /** The header field with an API key; undefined for the user name of `Authorization: Basic`. */
  readonly field: string | undefined;
  /** Whether the upstream receives it. */
  readonly forward: boolean;
}

/**
 * The values of a field, in order. A field under another spelling (`X_API_Key`) is read as well: an upstream could
 * take it for the one that was verified.
 */
export function valuesUnderAnySpelling(fields: FieldSection, name: string): readonly string[] {
  const folded = foldName(name);
  return fields.names.flatMap((one, index) => (one.folded === folded ? [fields.valueAt(index)] : []));
}

/** Contract section 5. The scheme may be in any case (RFC 9110 section 11.1); exactly one space follows. */
const SCHEME = /^Bearer /i;
const SCHEME_LENGTH = 'Bearer '.length;

/** The token of an Authorization header; undefined if its scheme is another one. */
export function bearerToken(authorization: string): string | undefined {
  return SCHEME.test(authorization) ? authorization.slice(SCHEME_LENGTH) : undefined;
}

/** The user name of Basic credentials (RFC 7617); undefined for another scheme, or without a user name. */
export function basicUser(authorization: string): string | undefined {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? [];
  const [user = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 1);
  return user === '' ? undefined : user;
}

/**
 * Says which fields have credentials that the upstream should not receive.
 *
 * @param authorization the request's Authorization field
 */
export function hiddenCredentials(
  credentials: readonly CredentialField[],
  authorization: string | undefined,
): ((name: FieldName) => boolean) | undefined {
  if (credentials.length === 0) return undefined;
  const hidden = credentials.filter(({ forward }) => !forward);
  if (hidden.length === 0) return undefined;
  const names = new Set(hidden.map(({ field }) => foldName(field ?? '')));
  const hidesBasic =
    hidden.some(({ field }) => field === undefined) && basicUser(authorization ?? '') !== undefined;
  return ({ folded, lower }) => names.has(folded) || (hidesBasic && lower === 'authorization');
}
