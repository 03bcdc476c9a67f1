import type { JSONWebKeySet } from 'jose';
import type { Identities } from '../config/files/identities/parse-identities.ts';
import type { Settings } from '../config/settings/settings.ts';
import { Revocations } from '../facts/revocations.ts';
import { ApiKeys, keyOwnersUrl } from './api-keys.ts';
import { CachedTokens } from './cached-tokens.ts';
import { ClaimsDirectory } from './directory/claims-directory.ts';
import { HttpDirectory } from './directory/http-directory.ts';
import type { IdentityOf } from './identity-observer.ts';
import type { Directory, IdentitySource } from './identity-source.ts';
import { IntrospectionVerifier } from './introspection.ts';
import { RemoteKeys } from './jwt/remote-keys.ts';
import { findKeyIn, JwtVerifier } from './jwt/verifier.ts';
import type { Reporting } from './provider/provider.ts';
import { StaticIdentities } from './static.ts';

/** The parsed files that the identity settings refer to. */
interface IdentityInputs {
  readonly identities: Identities;
  readonly keys: JSONWebKeySet | undefined;
  readonly settings: Settings;
}

/** The identity source and the directory that the `identity` section configures. */
export interface OpenedIdentity {
  readonly source: IdentitySource;
  readonly directory: Directory;
  /** A revocation added here applies to the next request. */
  readonly revocations: Revocations;
  /** Replaces the identities after a reload of the identities file. */
  replaceIdentities(identities: Identities): void;
}

/**
 * Does not wait for providers. A provider that cannot be reached is not an error here; lookups are then 'unavailable'.
 *
 * @param revocations may be shared with other sources
 */
export function openIdentity(
  settings: Settings['identity'],
  files: IdentityInputs,
  reporting: Reporting,
  revocations = new Revocations(),
): OpenedIdentity {
  const { identities, keys } = files;
  const file = new StaticIdentities(identities, reporting.observer, revocations);
  const replaceIdentities: OpenedIdentity['replaceIdentities'] = (next) => file.replace(next);
  if (settings.kind === 'static') return { source: file, directory: file, revocations, replaceIdentities };
  if (settings.kind === 'api-keys') return openApiKeys(settings, files, file, revocations, reporting);
  const source =
    settings.kind === 'jwt'
      ? openJwt(settings, keys, revocations, reporting)
      : openIntrospection(settings, revocations, reporting);
  const directory = openDirectory(settings.directory, file, reporting);
  return { source, directory, revocations, replaceIdentities };
}

function openApiKeys(
  settings: IdentityOf<'api-keys'>,
  { identities, settings: { upstream } }: IdentityInputs,
  file: StaticIdentities,
  revocations: Revocations,
  reporting: Reporting,
): OpenedIdentity {
  const url = keyOwnersUrl(settings.url, upstream.url);
  const source = new ApiKeys({ ...settings, ...reporting, url, revocations }, file, identities);
  const replaceIdentities: OpenedIdentity['replaceIdentities'] = (next) => {
    file.replace(next);
    source.replace(next);
  };
  return { source, directory: file, revocations, replaceIdentities };
}

function openJwt(
  settings: IdentityOf<'jwt'>,
  keys: IdentityInputs['keys'],
  revocations: Revocations,
  { observer, log }: Reporting,
): IdentitySource {
  return new CachedTokens({
    source: 'jwt',
    verifier: new JwtVerifier({ ...settings, ...keysOf(settings, keys, { observer, log }) }),
    freshMs: settings.cacheSeconds * 1000,
    refusedMs: REFUSED_JWT_MS,
    outageMs: 0,
    maxTokens: settings.maxCachedTokens,
    revocations,
    observer,
  });
}

/** A refused signature is cached only briefly, because an issuer may change a key without changing its id. */
const REFUSED_JWT_MS = 10_000;

function keysOf(settings: IdentityOf<'jwt'>, keys: IdentityInputs['keys'], reporting: Reporting) {
  if (keys !== undefined) return { findKey: findKeyIn(keys) };
  const remote = new RemoteKeys({
    ...reporting,
    url: settings.jwksUrl ?? '',
    timeoutMs: settings.timeoutMs,
    cooldownMs: settings.jwksCooldownSeconds * 1000,
  });
  void remote.warmUp();
  return { findKey: remote.find.bind(remote), renewed: remote };
}

function openIntrospection(
  settings: IdentityOf<'introspection'>,
  revocations: Revocations,
  { observer, log }: Reporting,
): IdentitySource {
  return new CachedTokens({
    source: 'introspection',
    verifier: new IntrospectionVerifier({ ...settings, observer, log, sharedNowMs: () => revocations.nowMs }),
    freshMs: settings.cacheSeconds * 1000,
    refusedMs: settings.negativeCacheSeconds * 1000,
    outageMs: settings.staleIfErrorSeconds * 1000,
    maxTokens: settings.maxCachedTokens,
    revocations,
    observer,
  });
}

function openDirectory(
  settings: IdentityOf<'jwt'>['directory'],
  file: Directory,
  { observer, log }: Reporting,
): Directory {
  switch (settings.kind) {
    case 'claims':
      return new ClaimsDirectory();
    case 'file':
      return file;
    case 'http':
      return new HttpDirectory({
        ...settings,
        observer,
        log,
        freshMs: settings.cacheSeconds * 1000,
        refusedMs: settings.negativeCacheSeconds * 1000,
        outageMs: settings.staleIfErrorSeconds * 1000,
        maxAccounts: settings.maxCachedAccounts,
      });
  }
}
