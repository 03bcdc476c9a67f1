import { hash } from 'node:crypto';
import { configurationFiles } from '../../config/load.ts';
import { ConfigError } from '../../config/problem.ts';
import { FileSource } from '../../config/reader/file-source.ts';
import { nearest } from '../../config/reader/messages.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { Revoked } from '../../identity/revocations.ts';

/** What the identities file knows of a token or a principal. */
export type Knowledge =
  | { readonly isKnown: true }
  /** `suggestion`: the id of a principal that is spelt nearly so. `isToken`: it is a token of the file. */
  | {
      readonly isKnown: false;
      readonly file: string;
      readonly suggestion?: string;
      readonly isToken: boolean;
    }
  /** Principals are known to an issuer, or the file cannot be read. */
  | { readonly isKnown: undefined; readonly why: string };

export function lookUp(revoked: Revoked, settings: Settings): Knowledge {
  const { identity } = settings;
  if (!('file' in identity)) {
    return { isKnown: undefined, why: `identity.kind is ${identity.kind}, so only the issuer knows them` };
  }
  try {
    const identities = configurationFiles(settings, new FileSource()).identities?.read();
    if (identities === undefined) return { isKnown: true };
    const digests = new Set([...identities.tokens.keys()].map(digestOfKey));
    if (revoked.kind === 'token') {
      if (digests.has(revoked.digestHex)) return { isKnown: true };
      return identity.kind === 'static'
        ? { isKnown: false, file: identity.file, isToken: false }
        : { isKnown: undefined, why: 'identity.kind is api-keys, so the file does not have all of them' };
    }
    return lookUpPrincipal(revoked.id, identity.file, identities.principals, digests);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { isKnown: undefined, why: `${identity.file} cannot be read` };
  }
}

function lookUpPrincipal(
  id: string,
  file: string,
  principals: ReadonlyMap<string, unknown>,
  digests: ReadonlySet<string>,
): Knowledge {
  if (principals.has(id)) return { isKnown: true };
  const isToken = digests.has(hash('sha256', id));
  const suggestion = isToken ? undefined : nearest(id, [...principals.keys()]);
  return { isKnown: false, file, isToken, ...(suggestion === undefined ? {} : { suggestion }) };
}

/** A key of `tokens` is a token, or `sha256:` and the digest of one. */
function digestOfKey(key: string): string {
  return key.startsWith('sha256:') ? key.slice('sha256:'.length) : hash('sha256', key);
}
