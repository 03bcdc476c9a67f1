import type { Settings } from '../config/settings/settings.ts';
import { RevokedToken } from '../facts/revocations.ts';
import type { Authentication } from './identity-source.ts';

/** The settings of one kind of identity. */
export type IdentityOf<K extends Settings['identity']['kind']> = Extract<
  Settings['identity'],
  { readonly kind: K }
>;

/** How tokens are authenticated: `identity.kind`. */
export type SourceName = Settings['identity']['kind'];

/** The services that the gateway calls over HTTP. */
export type ProviderName = 'jwks' | 'introspection' | 'directory' | 'api-keys';

/** What came of a call to one of them: an answer, an answer that the gateway cannot use, or a failure of the service. */
export type ProviderOutcome = 'answered' | 'unusable' | 'failed';

/** What came of a token. */
type IdentityOutcome = 'known' | 'invalid' | 'unavailable';

function identifications(
  source: SourceName,
  outcomes: readonly IdentityOutcome[],
  cached: readonly boolean[],
) {
  return outcomes.flatMap((outcome) => cached.map((one) => [source, outcome, one] as const));
}

const ALL: readonly IdentityOutcome[] = ['known', 'invalid', 'unavailable'];

/** The tokens of a file are always in memory. */
const OF_FILE = identifications('static', ['known', 'invalid'], [true]);

/** What can come of a token with each kind. API keys are looked up each time, and the file has other tokens. */
const IDENTIFICATIONS: Readonly<Record<SourceName, ReturnType<typeof identifications>>> = {
  static: OF_FILE,
  'api-keys': [...identifications('api-keys', ALL, [false]), ...OF_FILE],
  jwt: identifications('jwt', ALL, [true, false]),
  introspection: identifications('introspection', ALL, [true, false]),
};

/** What can come of tokens with these settings. */
export function identificationsOf({ kind }: Settings['identity']) {
  return IDENTIFICATIONS[kind];
}

/** The services that are called with these settings. */
export function providersOf(settings: Settings['identity']): readonly ProviderName[] {
  if (settings.kind === 'static') return [];
  if (settings.kind === 'api-keys') return ['api-keys'];
  const providers: ProviderName[] = settings.directory.kind === 'http' ? ['directory'] : [];
  if (settings.kind === 'introspection') return [...providers, 'introspection'];
  return settings.jwksUrl === undefined ? providers : [...providers, 'jwks'];
}

/** What can come of calls. Every token depends on the keys, so that an unusable key set is a failure. */
export function providerOutcomesOf(provider: ProviderName): readonly ProviderOutcome[] {
  return provider === 'jwks' ? ['answered', 'failed'] : ['answered', 'unusable', 'failed'];
}

export function outcomeOf(answer: Authentication): IdentityOutcome {
  if (answer === 'unavailable') return answer;
  return typeof answer === 'string' || answer instanceof RevokedToken ? 'invalid' : 'known';
}

/** Called for identity events. The metrics implement it. It never receives a token, principal or Account. */
export interface IdentityObserver {
  /** A token was checked. `cached`: no provider was called and no signature verified. */
  identified(source: SourceName, outcome: IdentityOutcome, cached: boolean): void;
  /** A provider was called over the network. */
  providerCalled(provider: ProviderName, outcome: ProviderOutcome, durationMs: number): void;
  /** The keys of an issuer were fetched for the first time. Shows how old the last ones are, which is read at each scrape. */
  showKeysAge(ageSeconds: () => number): void;
  /** A revocation was applied. */
  revoked(): void;
  /** Whether this replica receives revocations. */
  revocationsSubscribed(isSubscribed: boolean): void;
}

/** Does nothing. */
export const silentIdentityObserver: IdentityObserver = {
  identified() {},
  providerCalled() {},
  showKeysAge() {},
  revoked() {},
  revocationsSubscribed() {},
};
