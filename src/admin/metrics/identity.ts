import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { IdentityObserver } from '../../identity/observer.ts';
import { Tally } from './tally.ts';

/** Seconds; from a provider next door to one at its time-out. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What becomes of tokens, and of those who vouch for them. */
export function identityMetrics(registry: Registry): IdentityObserver {
  const registers = [registry];
  const providers = new Histogram({
    name: 'weir_identity_provider_duration_seconds',
    help: 'Time that a provider of keys, introspection or Accounts took, by outcome.',
    labelNames: ['provider', 'outcome'],
    buckets: SECONDS,
    registers,
  });
  const revocations = new Counter({
    name: 'weir_revocations_total',
    help: 'Revocations put in force.',
    registers,
  });
  return {
    identified: identifications(registry),
    providerAsked(provider, outcome, durationMs) {
      providers.observe({ provider, outcome }, durationMs / 1000);
    },
    keysFetched: keysAge(registry),
    revoked: () => revocations.inc(),
    revocationsHeard: hearing(registry),
  };
}

function identifications(registry: Registry): IdentityObserver['identified'] {
  const tally = new Tally(registry, {
    name: 'weir_identifications_total',
    help: 'Tokens looked at, by how they are proven, outcome, and whether a look-up in memory was enough.',
    labelNames: ['source', 'outcome', 'cached'],
  });
  return (source, outcome, cached) => tally.add(1, source, outcome, cached ? 'true' : 'false');
}

/** Shown from the first fetch on: a gateway that needs no keys has none that could be old. */
function keysAge(registry: Registry): IdentityObserver['keysFetched'] {
  let fetchedAtMs = 0;
  let isShown = false;
  return (atMs) => {
    fetchedAtMs = atMs;
    if (isShown) return;
    isShown = true;
    new Gauge({
      name: 'weir_jwks_age_seconds',
      help: "Time since the issuer's keys in use were fetched.",
      registers: [registry],
      collect() {
        this.set((Date.now() - fetchedAtMs) / 1000);
      },
    });
  };
}

/** Shown where replicas hear of revocations at all: with a store that they share. */
function hearing(registry: Registry): IdentityObserver['revocationsHeard'] {
  let gauge: Gauge | undefined;
  return (isHeard) => {
    gauge ??= new Gauge({
      name: 'weir_revocations_heard',
      help: '1 while revocations reach this replica.',
      registers: [registry],
    });
    gauge.set(Number(isHeard));
  };
}
