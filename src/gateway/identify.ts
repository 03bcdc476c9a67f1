import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Principal } from '../domain/caller.ts';
import type { Answer, Client, IdentitySource } from '../identity/identity.ts';
import { bearerToken } from './http/bearer.ts';
import { Refusal } from './problems.ts';

/** RFC 6750 section 3: a request without credentials gets the bare challenge, a bad token gets its error. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="weir"' };
const INVALID_TOKEN = {
  'WWW-Authenticate':
    'Bearer realm="weir", error="invalid_token", error_description="The access token is not valid"',
};

const NO_CREDENTIALS = new Refusal('Unauthenticated', 'The request has no Authorization header.', {
  headers: CHALLENGE,
});
const NOT_BEARER = new Refusal('Unauthenticated', 'The Authorization header is not "Bearer" and a token.', {
  headers: CHALLENGE,
});
const INVALID = new Refusal('Unauthenticated', 'The access token is not valid.', { headers: INVALID_TOKEN });
/** Not a 401: the client would discard a token that may be valid. */
const UNAVAILABLE = new Refusal('ServiceUnavailable', 'The access token cannot be checked at the moment.');

/**
 * The principal of the bearer token in the Authorization header. A refusal with 401 if the token is missing or invalid, with 503 if
 * it cannot be checked. Synchronous if the token is cached. Requests with two Authorization headers were refused earlier.
 */
export function identify(
  source: IdentitySource,
  authorization: string | undefined,
  client?: Client,
): Awaitable<Principal | Refusal> {
  if (authorization === undefined) return NO_CREDENTIALS;
  const token = bearerToken(authorization);
  if (token === undefined) return NOT_BEARER;
  return andThen(source.principalOf(token, client), principalOrRefusal);
}

function principalOrRefusal(answer: Answer<Principal>): Principal | Refusal {
  if (answer === undefined) return INVALID;
  return answer === 'unavailable' ? UNAVAILABLE : answer;
}
