import { didYouMean } from '../../config/reader/value-messages.ts';
import type { Refusal } from '../../domain/problems.ts';
import { digestOf } from '../../domain/token-digest.ts';
import { KEY_FORM, keyOwnersUrl } from '../../identity/api-keys.ts';
import type { TokenFault } from '../../identity/identity-source.ts';
import type { Configuration } from '../../process/configuration.ts';
import type { RequestContext } from '../../stages/request-context.ts';

/** Why a caller is refused. The client of such a request does not learn it. */
interface RefusalReason {
  /** As in the access log for a 401; of an Account, `unknown-account` or `foreign-account`. */
  readonly reason: TokenFault | 'unknown-account' | 'foreign-account';
  readonly text: string;
}

/** Why a request with this token, or for this Account, is refused with a 401 or 403; undefined for any other refusal. */
export async function reasonOf(
  refusal: Refusal | undefined,
  { token, account }: { readonly token: string | undefined; readonly account: string | undefined },
  { tokenFault, identified }: RequestContext,
  configuration: Configuration,
): Promise<RefusalReason | undefined> {
  if (tokenFault !== undefined) {
    return { reason: tokenFault, text: faultText(tokenFault, token ?? '', configuration) };
  }
  if (refusal?.code !== 'Forbidden' || account === undefined || identified === undefined) return undefined;
  const { principal, directory } = identified;
  const found = await directory.find(account, principal);
  if (found === undefined) return unknownAccount(account, configuration);
  if (found === 'unavailable' || token === undefined) return undefined;
  const text =
    principal.account === undefined
      ? `${principal.id} acts for the Accounts of ${principal.organization} only, and ${account} is not one of them`
      : `${principal.id} acts for ${[principal.account, ...principal.actsFor].join(', ')} only`;
  return { reason: 'foreign-account', text };
}

function unknownAccount(account: string, { identities }: Configuration): RefusalReason {
  const similar = didYouMean(account, [...identities.accounts.keys()]);
  const question = similar === undefined ? '' : `; ${similar}`;
  return {
    reason: 'unknown-account',
    text: `the directory of Accounts does not have ${account}${question}`,
  };
}

function faultText(fault: TokenFault, token: string, { settings }: Configuration): string {
  const { identity, upstream } = settings;
  if (identity.kind === 'api-keys' && token.startsWith(identity.prefix)) {
    if (fault === 'malformed') return `it is not in the file, and an API key has ${KEY_FORM}`;
    const hex = digestHexOf(token);
    const url = keyOwnersUrl(identity.url, upstream.url).replaceAll('{digest}', hex);
    if (fault === 'unknown-token') return `${url} answers 404. The digest is the SHA-256 of the key in hex`;
    if (fault === 'no-account')
      return `${url} names a principal that ${identity.file} does not have, or an Account that it may not act for`;
  }
  if (fault === 'unknown-token') return unknownText(token, identity.kind);
  return TEXTS[fault];
}

function unknownText(token: string, kind: string): string {
  if (kind === 'introspection')
    return 'the issuer says that it is not active: it has expired, was revoked, or is not from this issuer';
  return `no entry of the identities file is this token, or sha256:${digestHexOf(token)}`;
}

function digestHexOf(token: string): string {
  return Buffer.from(digestOf(token), 'latin1').toString('hex');
}

const TEXTS: Readonly<Record<Exclude<TokenFault, 'unknown-token'>, string>> = {
  missing: 'the request has no token',
  malformed:
    'it cannot be read: a token has letters, digits or -._~+/ and no spaces, and a JWT has three parts in base64url and an "exp"',
  revoked: 'it, or its principal, is revoked: see weir revoke --list',
  expired: 'it has expired (exp)',
  'not-yet-valid': 'it is not valid yet (nbf)',
  issuer: 'it is from another issuer (iss) than identity.issuer',
  audience: 'it is for another audience (aud) than identity.audience',
  signature: 'its signature does not match, or its algorithm is not in identity.algorithms',
  'unknown-key': 'it is signed with a key that the key set does not have (kid)',
  'no-account':
    'its claims name no usable principal, type or Account, or the names in identity.claims are others',
};
