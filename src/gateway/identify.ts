import type { IdentitySource } from '../identity/identity.ts';
import { Refusal } from './problems.ts';
import type { Principal } from './types.ts';

/** RFC 6750 section 2.1: the scheme is case-insensitive (RFC 9110 section 11.1), the token is b64token. */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/** RFC 6750 section 3: a request without credentials gets the bare challenge, a bad token gets its error. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer' };
const INVALID_TOKEN = { 'WWW-Authenticate': 'Bearer error="invalid_token"' };

/** Who holds the bearer token of the Authorization header; a refusal with 401 when nobody provably does. */
export async function identify(
  source: IdentitySource,
  authorization: string | undefined,
): Promise<Principal | Refusal> {
  if (authorization === undefined) {
    return new Refusal('Unauthenticated', 'The request has no Authorization header.', { headers: CHALLENGE });
  }
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) {
    return new Refusal('Unauthenticated', 'The Authorization header is not a bearer token.', {
      headers: CHALLENGE,
    });
  }
  const principal = await source.principalOf(token);
  return (
    principal ?? new Refusal('Unauthenticated', 'The access token is not valid.', { headers: INVALID_TOKEN })
  );
}
