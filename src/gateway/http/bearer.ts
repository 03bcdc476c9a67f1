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
