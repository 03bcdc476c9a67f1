import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Settings } from '../../config/settings/settings.ts';
import type { IdentityObserver, ProviderName } from '../../identity/observer.ts';
import { Tally } from './tally.ts';

/** Histogram buckets in seconds, from a provider on the same network to one at its timeout. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of token verification and of the identity providers. Those that the settings use are shown from the start. */
export function identityMetrics(registry: Registry, settings: Settings['identity']): IdentityObserver {
  const registers = [registry];
  const providers = new Histogram({
    name: 'weir_identity_provider_duration_seconds',
    help: 'Duration of calls to identity providers, by provider and outcome.',
    labelNames: ['provider', 'outcome'],
    buckets: SECONDS,
    registers,
  });
  for (const provider of providersOf(settings)) {
    for (const outcome of ['answered', 'failed']) providers.zero({ provider, outcome });
  }
  const revocations = new Counter({
    name: 'weir_revocations_total',
    help: 'Revocations applied.',
    registers,
  });
  return {
    identified: identifications(registry, settings.kind),
    providerCalled(provider, outcome, durationMs) {
      providers.observe({ provider, outcome }, durationMs / 1000);
    },
    keysFetched: keysAge(registry),
    revoked: () => revocations.inc(),
    revocationsSubscribed: subscription(registry),
  };
}

function providersOf(settings: Settings['identity']): readonly ProviderName[] {
  if (settings.kind === 'static' || settings.kind === 'api-keys') {
    return settings.kind === 'static' ? [] : ['api-keys'];
  }
  const providers: ProviderName[] = settings.directory.kind === 'http' ? ['directory'] : [];
  if (settings.kind === 'introspection') return [...providers, 'introspection'];
  return settings.jwksUrl === undefined ? providers : [...providers, 'jwks'];
}

/** The tokens of a file are always in memory; API keys are looked up each time, and the file has other tokens. */
const KNOWN_IDENTIFICATIONS = {
  static: [
    ['static', 'known', 'true'],
    ['static', 'invalid', 'true'],
  ],
  'api-keys': ['known', 'invalid', 'unavailable'].map((outcome) => ['api-keys', outcome, 'false']),
  jwt: cachedOrNot('jwt'),
  introspection: cachedOrNot('introspection'),
} as const;

function cachedOrNot(source: string): readonly string[][] {
  const outcomes = ['known', 'invalid', 'unavailable'];
  return outcomes.flatMap((outcome) => ['true', 'false'].map((cached) => [source, outcome, cached]));
}

function identifications(
  registry: Registry,
  kind: Settings['identity']['kind'],
): IdentityObserver['identified'] {
  const tally = new Tally(registry, {
    name: 'weir_identifications_total',
    help: 'Tokens checked, by identity source, outcome, and whether the result was cached.',
    labelNames: ['source', 'outcome', 'cached'],
    known: [...KNOWN_IDENTIFICATIONS[kind], ...(kind === 'api-keys' ? KNOWN_IDENTIFICATIONS.static : [])],
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
    new Gauge({
      name: 'weir_jwks_age_seconds',
      help: "Time since the issuer's keys were fetched.",
      registers: [registry],
      collect() {
        this.set((Date.now() - fetchedAtMs) / 1000);
      },
    });
  };
}

/** The gauge is registered only with a shared store, through which revocations reach the replicas. */
function subscription(registry: Registry): IdentityObserver['revocationsSubscribed'] {
  let gauge: Gauge | undefined;
  return (isSubscribed) => {
    gauge ??= new Gauge({
      name: 'weir_revocations_heard',
      help: '1 while this replica receives revocations from Redis, otherwise 0.',
      registers: [registry],
    });
    gauge.set(Number(isSubscribed));
  };
}
