import type { IncomingMessage } from 'node:http';
import type { Answer, IdentitySource } from '../identity/identity.ts';
import { Refusal } from './problems.ts';
import type { Principal } from './types.ts';

/** Contract section 5, written exactly so: see docs/decisions on the letter case of the scheme. */
const SCHEME = 'Bearer ';
const HEADER = 'authorization';

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
const SEVERAL = new Refusal('Unauthenticated', 'The request has more than one Authorization header.', {
  headers: INVALID_TOKEN,
});
const INVALID = new Refusal('Unauthenticated', 'The access token is not valid.', { headers: INVALID_TOKEN });
/** Never 401: the client would throw away a token that may be good. */
const UNAVAILABLE = new Refusal('ServiceUnavailable', 'The access token cannot be checked at the moment.');

/**
 * Who holds the bearer token of the Authorization header; a refusal with 401 when nobody provably does, with 503 when
 * nobody can tell. At once where the token is known already.
 */
export function identify(
  source: IdentitySource,
  { headers, rawHeaders }: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
): Principal | Refusal | Promise<Principal | Refusal> {
  const { authorization } = headers;
  if (authorization === undefined) return NO_CREDENTIALS;
  if (!authorization.startsWith(SCHEME)) return NOT_BEARER;
  // Node keeps the first of several; the upstream, which gets them all, might look at the last.
  if (isRepeated(rawHeaders)) return SEVERAL;
  const answer = source.principalOf(authorization.slice(SCHEME.length));
  return answer instanceof Promise ? answer.then(principalOrRefusal) : principalOrRefusal(answer);
}

function principalOrRefusal(answer: Answer<Principal>): Principal | Refusal {
  if (answer === undefined) return INVALID;
  return answer === 'unavailable' ? UNAVAILABLE : answer;
}

function isRepeated(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === HEADER.length && name.toLowerCase() === HEADER) count++;
  }
  return count > 1;
}
