import type { Answer } from './identity.ts';
import { RevokedToken } from './revocations.ts';

/** How tokens are authenticated: `identity.kind`. */
export type SourceName = 'static' | 'jwt' | 'introspection' | 'api-keys';

/** The services that the gateway calls over HTTP. */
export type ProviderName = 'jwks' | 'introspection' | 'directory' | 'api-keys';

/** What came of a token. */
export type IdentityOutcome = 'known' | 'invalid' | 'unavailable';

export function outcomeOf(answer: Answer<object>): IdentityOutcome {
  if (answer === undefined || answer instanceof RevokedToken) return 'invalid';
  return answer === 'unavailable' ? answer : 'known';
}

/** Called for identity events. The metrics implement it. It never receives a token, principal or Account. */
export interface IdentityObserver {
  /** A token was checked. `cached`: no provider was called and no signature verified. */
  identified(source: SourceName, outcome: IdentityOutcome, cached: boolean): void;
  /** A provider was called over the network. */
  providerCalled(provider: ProviderName, outcome: 'answered' | 'failed', durationMs: number): void;
  /** The keys were fetched at this Unix time. */
  keysFetched(atMs: number): void;
  /** A revocation was applied. */
  revoked(): void;
  /** Whether this replica receives revocations. */
  revocationsSubscribed(isSubscribed: boolean): void;
}

/** Does nothing. */
export const silentIdentityObserver: IdentityObserver = {
  identified() {},
  providerCalled() {},
  keysFetched() {},
  revoked() {},
  revocationsSubscribed() {},
};
