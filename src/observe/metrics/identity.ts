import { type Gauge, Histogram, type Registry } from 'prom-client';
import type { Settings } from '../../config/settings/settings.ts';
import {
  type IdentityObserver,
  identificationsOf,
  providerOutcomesOf,
  providersOf,
} from '../../identity/observer.ts';
import { counter, gauge, readGauge } from './register.ts';
import { Tally } from './tally.ts';

/** Histogram buckets in seconds, from a provider on the same network to one at its timeout. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of token verification and of the identity providers. Those that the settings use are shown from the start. */
export function identityMetrics(registry: Registry, settings: Settings['identity']): IdentityObserver {
  const providers = new Histogram({
    name: 'weir_identity_provider_duration_seconds',
    help: 'Duration of calls to identity providers, by provider and outcome.',
    labelNames: ['provider', 'outcome'],
    buckets: SECONDS,
    registers: [registry],
  });
  for (const provider of providersOf(settings)) {
    for (const outcome of providerOutcomesOf(provider)) providers.zero({ provider, outcome });
  }
  const revocations = counter(registry, 'weir_revocations_total', 'Revocations applied.');
  return {
    identified: identifications(registry, settings),
    providerCalled(provider, outcome, durationMs) {
      providers.observe({ provider, outcome }, durationMs / 1000);
    },
    keysFetched: keysAge(registry),
    revoked: () => revocations.inc(),
    revocationsSubscribed: subscription(registry),
  };
}

function identifications(registry: Registry, settings: Settings['identity']): IdentityObserver['identified'] {
  const tally = new Tally(registry, {
    name: 'weir_identifications_total',
    help: 'Tokens checked, by identity source, outcome, and whether the result was cached.',
    labelNames: ['source', 'outcome', 'cached'],
    known: identificationsOf(settings).map((one) => one.map(String)),
  });
  return (source, outcome, cached) => tally.add(1, source, outcome, cached ? 'true' : 'false');
}

/** The gauge is registered at the first fetch, because a gateway that fetches no keys has no age to report. */
function keysAge(registry: Registry): IdentityObserver['keysFetched'] {
  let fetchedAtMs = 0;
  let isShown = false;
  return (atMs) => {
    fetchedAtMs = atMs;
    if (isShown) return;
    isShown = true;
    const help = "Time since the issuer's keys were fetched.";
    readGauge(registry, 'weir_jwks_age_seconds', help, () => (Date.now() - fetchedAtMs) / 1000);
  };
}

/** The gauge is registered only with a shared store, through which revocations reach the replicas. */
function subscription(registry: Registry): IdentityObserver['revocationsSubscribed'] {
  const help = '1 while this replica receives revocations from Redis, otherwise 0.';
  let subscribed: Gauge | undefined;
  return (isSubscribed) => {
    subscribed ??= gauge(registry, 'weir_revocations_heard', help);
    subscribed.set(Number(isSubscribed));
  };
}
