/** How the tokens of a gateway are proven: `identity.kind`. */
export type SourceName = 'static' | 'jwt' | 'introspection' | 'api-keys';

/** Whom the gateway asks over HTTP. */
export type ProviderName = 'jwks' | 'introspection' | 'directory' | 'api-keys';

/** Who counts what comes of tokens. No token, principal or Account is ever handed over. */
export interface IdentityObserver {
  /** A token was looked at; `cached` when that took no more than a look-up in this process. */
  identified(source: SourceName, outcome: 'known' | 'invalid' | 'unavailable', cached: boolean): void;
  /** A provider was asked over the network. */
  providerAsked(provider: ProviderName, outcome: 'answered' | 'failed', durationMs: number): void;
  /** The keys in use were fetched at this moment of Unix time. */
  keysFetched(atMs: number): void;
  /** A revocation was put in force. */
  revoked(): void;
  /** Whether revocations reach this replica. */
  revocationsHeard(isHeard: boolean): void;
}

/** Counts nothing. */
export const silentIdentityObserver: IdentityObserver = {
  identified() {},
  providerAsked() {},
  keysFetched() {},
  revoked() {},
  revocationsHeard() {},
};
