import { randomUUID } from 'node:crypto';
import type { Settings } from '../../config/settings/settings.ts';
import { TokenTable } from '../../domain/token-digest.ts';
import { Revocations } from '../../facts/revocations.ts';
import { ApiKeys, keyOwnersUrl } from '../../identity/api-keys.ts';
import { HttpDirectory } from '../../identity/directory/http-directory.ts';
import { type IdentityOf, silentIdentityObserver } from '../../identity/identity-observer.ts';
import { IntrospectionVerifier } from '../../identity/introspection.ts';
import { RemoteKeys } from '../../identity/jwt/remote-keys.ts';
import type { Reporting } from '../../identity/provider/provider.ts';
import { StaticIdentities } from '../../identity/static.ts';
import type { ConnectionResult } from './try-upstreams.ts';

/** Calls each HTTP provider as the gateway would, with a token or an Account that cannot exist. */
export function tryProviders(
  identity: Settings['identity'],
  upstreamUrl: string,
): readonly Promise<ConnectionResult>[] {
  const trials: Promise<ConnectionResult>[] = [];
  if (identity.kind === 'api-keys') trials.push(tryApiKeys(identity, upstreamUrl));
  if (identity.kind === 'introspection') trials.push(tryIntrospection(identity));
  if ('jwksUrl' in identity && identity.jwksUrl) trials.push(tryKeys(identity, identity.jwksUrl));
  if ('directory' in identity && identity.directory.kind === 'http')
    trials.push(tryDirectory(identity.directory));
  return trials;
}

async function tryKeys(settings: IdentityOf<'jwt'>, url: string): Promise<ConnectionResult> {
  const name = `keys ${withoutQuery(url)}`;
  const seen = watch();
  let isFetched = false;
  const observer = { ...silentIdentityObserver, showKeysAge: () => (isFetched = true) };
  const { timeoutMs } = settings;
  await new RemoteKeys({ ...seen.reporting, observer, url, timeoutMs, cooldownMs: 0 }).warmUp();
  return isFetched
    ? { name, outcome: 'ok', text: 'answers with a key set' }
    : { name, outcome: 'failed', text: seen.reason() };
}

async function tryIntrospection(settings: IdentityOf<'introspection'>): Promise<ConnectionResult> {
  const name = `introspection ${withoutQuery(settings.url)}`;
  const seen = watch();
  const verifier = new IntrospectionVerifier({ ...settings, ...seen.reporting });
  const { outcome } = await verifier.verify(madeUp(), ASKER);
  if (outcome === 'unavailable') return { name, outcome: 'failed', text: seen.reason() };
  return outcome === 'invalid'
    ? { name, outcome: 'ok', text: 'accepts the credentials, and refuses a made-up token' }
    : { name, outcome: 'failed', text: 'calls a made-up token active: every token would be valid' };
}

async function tryApiKeys(settings: IdentityOf<'api-keys'>, upstreamUrl: string): Promise<ConnectionResult> {
  const url = keyOwnersUrl(settings.url, upstreamUrl);
  const name = `API keys ${withoutQuery(url)}`;
  const seen = watch();
  const nobody = { tokens: new TokenTable(0), principals: new Map(), accounts: new Map() };
  const options = { ...settings, ...seen.reporting, url, revocations: new Revocations() };
  const keys = new ApiKeys(options, new StaticIdentities(nobody), nobody);
  const principal = await keys.principalOf(settings.prefix + madeUp());
  return principal === 'unavailable'
    ? { name, outcome: 'failed', text: seen.reason() }
    : { name, outcome: 'ok', text: 'answers, and does not know a made-up key' };
}

async function tryDirectory(
  settings: Extract<IdentityOf<'jwt'>['directory'], { readonly kind: 'http' }>,
): Promise<ConnectionResult> {
  const name = `directory ${withoutQuery(settings.url)}`;
  const seen = watch();
  const noCache = { freshMs: 0, refusedMs: 0, outageMs: 0, maxAccounts: 1 };
  const directory = new HttpDirectory({ ...settings, ...seen.reporting, ...noCache });
  const account = await directory.find(madeUp(), { id: ASKER });
  if (account === 'unavailable') return { name, outcome: 'failed', text: seen.reason() };
  return account === undefined
    ? { name, outcome: 'ok', text: 'answers, and does not know a made-up Account' }
    : { name, outcome: 'warning', text: 'knows an Account with a made-up id' };
}

const ASKER = 'weir check';

/** Removes the query, which may contain a secret. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*/s, '');
}

function madeUp(): string {
  return `weir-check-${randomUUID()}`;
}

/** Keeps the reason that is logged for an unusable response. */
function watch(): { readonly reporting: Reporting; reason(): string } {
  let reason = 'no usable answer';
  const log: Reporting['log'] = {
    info() {},
    error() {},
    warn(details: unknown) {
      if (typeof details === 'object' && details !== null && 'reason' in details)
        reason = String(details.reason);
    },
  };
  return { reporting: { observer: silentIdentityObserver, log }, reason: () => reason };
}
