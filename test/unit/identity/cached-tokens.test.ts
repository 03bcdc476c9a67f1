import { beforeEach, expect, it } from 'vitest';
import type { Principal } from '../../../src/domain/caller.ts';
import { Revocations } from '../../../src/facts/revocations.ts';
import { CachedTokens } from '../../../src/identity/cached-tokens.ts';
import { silentIdentityObserver } from '../../../src/identity/identity-observer.ts';

const PRINCIPAL: Principal = { id: 'svc_1', type: 'ServiceAccount', account: 'acct_1', actsFor: new Set() };
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 10, 1);

/** The clock that can be set, and the one that cannot. */
let unixMs: number;
let monotonicMs: number;
let isRevokedAtIssuer: boolean;
let tokens: CachedTokens;

beforeEach(() => {
  unixMs = START_MS;
  monotonicMs = 1_000;
  isRevokedAtIssuer = false;
  const expiresAtMs = START_MS + 2 * HOUR_MS;
  const known = { outcome: 'known', principal: PRINCIPAL, expiresAtMs, confirmedAtMs: START_MS } as const;
  const refused = { outcome: 'invalid', isFinal: true, fault: 'unknown-token' } as const;
  tokens = new CachedTokens({
    source: 'introspection',
    verifier: { verify: async () => (isRevokedAtIssuer ? refused : known) },
    freshMs: 30_000,
    refusedMs: 10_000,
    outageMs: 0,
    maxTokens: 10,
    revocations: new Revocations(),
    observer: silentIdentityObserver,
    nowMs: () => unixMs,
    monotonicMs: () => monotonicMs,
  });
});

it('a token is verified again after the same time if the clock is set back meanwhile', async () => {
  expect(await tokens.principalOf('token')).toBe(PRINCIPAL);
  isRevokedAtIssuer = true;
  unixMs -= 5 * HOUR_MS;
  monotonicMs += 29_000;
  expect(await tokens.principalOf('token')).toBe(PRINCIPAL);
  monotonicMs += 1_000;
  expect(await tokens.principalOf('token')).toBe('unknown-token');
});

it('a refusal is forgotten after the same time if the clock is set back meanwhile', async () => {
  isRevokedAtIssuer = true;
  expect(await tokens.principalOf('token')).toBe('unknown-token');
  isRevokedAtIssuer = false;
  unixMs -= 5 * HOUR_MS;
  monotonicMs += 10_000;
  expect(await tokens.principalOf('token')).toBe(PRINCIPAL);
});

it('a cached token is not used after it has expired, also if the clock is set forward', async () => {
  expect(await tokens.principalOf('token')).toBe(PRINCIPAL);
  unixMs += 2 * HOUR_MS;
  expect(await tokens.principalOf('token')).toBe('expired');
});

it('a token is not cached for longer than it is valid', async () => {
  unixMs += 2 * HOUR_MS - 5_000;
  expect(await tokens.principalOf('token')).toBe(PRINCIPAL);
  isRevokedAtIssuer = true;
  unixMs -= 3 * HOUR_MS;
  monotonicMs += 5_000;
  expect(await tokens.principalOf('token')).toBe('unknown-token');
});
