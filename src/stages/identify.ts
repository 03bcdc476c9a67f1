import { type Awaitable, andThenWith } from '../domain/awaitable.ts';
import type { Principal } from '../domain/caller.ts';
import { Refusal } from '../domain/problems.ts';
import { RevokedToken } from '../facts/revocations.ts';
import { basicUser, bearerToken } from '../http/message/headers.ts';
import type {
  Authentication,
  Credential,
  Directory,
  IdentitySource,
  TokenFault,
} from '../identity/identity-source.ts';
import type { RequestContext } from './request-context.ts';

/** RFC 6750 section 3: a request without credentials gets the bare challenge, a bad token gets its error. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="weir"' };
const INVALID_TOKEN = {
  'WWW-Authenticate':
    'Bearer realm="weir", error="invalid_token", error_description="The access token is not valid"',
};

const NO_CREDENTIALS = new Refusal('Unauthenticated', 'The request has no Authorization header.', {
  headers: CHALLENGE,
});
const NOT_BEARER = new Refusal(
  'Unauthenticated',
  'The Authorization header must be "Bearer", a space and a token.',
  {
    headers: CHALLENGE,
  },
);
const NO_ACCEPTED = new Refusal(
  'Unauthenticated',
  'The request has none of the credentials that this API accepts.',
  {
    headers: CHALLENGE,
  },
);
const INVALID = new Refusal('Unauthenticated', 'The access token is not valid.', { headers: INVALID_TOKEN });
const INVALID_KEY = new Refusal('Unauthenticated', 'The API key is not valid.', { headers: CHALLENGE });
const SEVERAL = new Refusal(
  'BadRequest',
  'The request has more than one credential. Send one, so that it is clear who calls.',
);
/** Not a 401: the client would discard a token that may be valid. */
const UNAVAILABLE = new Refusal('ServiceUnavailable', 'The access token cannot be checked at the moment.');

/** What verifies credentials, and which Accounts it knows. */
export interface Verifiers {
  /** Verifies bearer tokens. */
  readonly identities: IdentitySource;
  readonly directory: Directory;
  /** The other credentials that are accepted. */
  readonly credentials: readonly Credential[];
}

/** Who calls, and where the Accounts of such callers are. */
export interface Identified {
  readonly principal: Principal;
  readonly directory: Directory;
}

/** A 401, and its reason, which the client does not learn. */
export interface RefusedToken {
  readonly fault: TokenFault;
  /** If it is revoked. */
  readonly token?: RevokedToken;
  readonly refusal: Refusal;
}

/** A credential of a request, and what verifies it. */
interface Found {
  readonly value: string;
  readonly source: IdentitySource;
  readonly directory: Directory;
  readonly invalid: Refusal;
}

/**
 * The principal that the request's only credential authenticates. A refusal with 401 if the credential is missing or invalid, with 400
 * if there are several, with 503 if it cannot be checked. Synchronous if the credential is cached.
 */
export function identify(
  verifiers: Verifiers,
  request: RequestContext,
): Awaitable<Identified | RefusedToken | Refusal> {
  const found =
    verifiers.credentials.length === 0 ? bearerOf(verifiers, request) : findOne(verifiers, request);
  if (found instanceof Refusal || 'fault' in found) return found;
  return andThenWith(found.source.principalOf(found.value, request), identifiedBy, found);
}

function identifiedBy(
  principal: Authentication,
  { directory, invalid }: Found,
): Identified | RefusedToken | Refusal {
  if (principal === 'unavailable') return UNAVAILABLE;
  if (typeof principal === 'string') return { fault: principal, refusal: invalid };
  if (principal instanceof RevokedToken) return { fault: 'revoked', token: principal, refusal: invalid };
  return { principal, directory };
}

function bearerOf({ identities, directory }: Verifiers, request: RequestContext): Found | RefusedToken {
  const authorization = request.source.field('authorization');
  if (authorization === undefined) return { fault: 'missing', refusal: NO_CREDENTIALS };
  const value = bearerToken(authorization);
  if (value === undefined) return { fault: 'malformed', refusal: NOT_BEARER };
  return { value, source: identities, directory, invalid: INVALID };
}

/** Refuses a request with several credentials, even if all but one are invalid: another server could read another one. */
function findOne(verifiers: Verifiers, request: RequestContext): Found | RefusedToken | Refusal {
  const found: (Found | RefusedToken)[] = [];
  if (request.source.field('authorization') !== undefined) found.push(authorizationOf(verifiers, request));
  for (const { field: name, source, directory } of verifiers.credentials) {
    const values = name === undefined ? [] : request.source.valuesOf(name);
    for (const value of values) found.push({ value, source, directory, invalid: INVALID_KEY });
  }
  if (found.length > 1) return SEVERAL;
  return found[0] ?? { fault: 'missing', refusal: NO_ACCEPTED };
}

function authorizationOf(verifiers: Verifiers, request: RequestContext): Found | RefusedToken {
  const basic = verifiers.credentials.find(({ field }) => field === undefined);
  const value = basic && basicUser(request.source.field('authorization') ?? '');
  if (basic === undefined || value === undefined) return bearerOf(verifiers, request);
  return { value, source: basic.source, directory: basic.directory, invalid: INVALID_KEY };
}
