import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Settings } from '../../../../src/config/settings/settings.ts';
import { PlainHistogram, Tally } from '../../../../src/observe/metrics/fast-metrics.ts';
import { createMetrics } from '../../../../src/observe/metrics/metrics.ts';
import { Counter, Histogram, Registry } from '../../../../src/observe/metrics/prometheus-client.ts';

const BUCKETS = [0.001, 0.01, 0.1, 1];
const NAME = 'weir_test';
const HELP = 'For a test.';

test('a plain histogram has the same output as one of prom-client for the same values', async () => {
  const values = fc.array(
    fc.oneof(fc.constantFrom(...BUCKETS, 0), fc.double({ min: 0, max: 5, noNaN: true })),
  );
  await fc.assert(
    fc.asyncProperty(values, async (observed) => {
      const theirs = new Registry();
      const ours = new Registry();
      const expected = new Histogram({ name: NAME, help: HELP, buckets: [...BUCKETS], registers: [theirs] });
      const histogram = new PlainHistogram(ours, NAME, HELP, BUCKETS);
      for (const value of observed) {
        expected.observe(value);
        histogram.observe(value);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
    }),
  );
});

test('a tally shows what prom-client would show of the same counts, at every scrape', async () => {
  const theirs = new Registry();
  const ours = new Registry();
  const labelNames = ['kind', 'outcome'];
  const expected = new Counter({ name: NAME, help: HELP, labelNames, registers: [theirs] });
  const tally = new Tally(ours, NAME, HELP, labelNames);
  for (const [kind, outcome, count] of [
    ['read', 'admitted', 1],
    ['read', 'denied', 2],
    ['write', 'admitted', 10],
    ['read', 'admitted', 3],
  ] as const) {
    expected.inc({ kind, outcome }, count);
    tally.add(count, kind, outcome);
    expect(await ours.metrics()).toBe(await theirs.metrics());
  }
});

test('a tally shows its known label values before anything is counted', async () => {
  const registry = new Registry();
  const known = [['read'], ['write']];
  new Tally(registry, NAME, HELP, ['kind'], known).add(2, 'write');
  expect(await registry.metrics()).toContain('weir_test{kind="read"} 0\nweir_test{kind="write"} 2');
});

test('each counter with labels has its known series from the start', async () => {
  const identity = { kind: 'jwt', jwksUrl: 'https://issuer.example.com', directory: { kind: 'file' } };
  const metrics = createMetrics([identity as Settings['identity']]);
  const text = await metrics.text();
  const counters = [...text.matchAll(/^# TYPE (weir_\S+) counter$/gm)].map(([, name = '']) => name);
  expect(counters.length).toBeGreaterThan(10);
  expect(counters.filter((name) => !new RegExp(`^${name}(\\{.*\\})? 0$`, 'm').test(text))).toEqual([]);
  for (const line of [
    'weir_requests_total{kind="write",bucket="organization-write",outcome="denied"} 0',
    'weir_requests_total{kind="read",bucket="none",outcome="Unauthenticated"} 0',
    'weir_requests_total{kind="none",bucket="blocked",outcome="denied"} 0',
    'weir_responses_total{source="upstream",class="5xx"} 0',
    'weir_degraded_total{reason="deadline"} 0',
    'weir_requests_read_total{reader="node"} 0',
    'weir_near_limit_total{bucket="person-read"} 0',
    'weir_unlisted_operations_total{method="PATCH"} 0',
    'weir_reloads_total{file="limits",outcome="failure"} 0',
    'weir_identifications_total{source="jwt",outcome="unavailable",cached="false"} 0',
    'weir_identity_provider_duration_seconds_count{provider="jwks",outcome="failed"} 0',
  ])
    expect(text).toContain(line);
  expect(text).not.toContain('provider="introspection"');
});

test('the series of everything that verifies credentials are shown from the start, each once', async () => {
  const identities = [
    { kind: 'jwt', jwksUrl: 'https://issuer.example.com', directory: { kind: 'http' } },
    { kind: 'introspection', directory: { kind: 'http' } },
    { kind: 'api-keys' },
  ];
  const text = await createMetrics(identities as unknown as readonly Settings['identity'][]).text();
  const lines = text.split('\n');
  for (const source of ['jwt', 'introspection', 'api-keys'])
    expect(text).toContain(`weir_identifications_total{source="${source}",outcome="known",cached="false"} 0`);
  for (const provider of ['jwks', 'introspection', 'directory', 'api-keys']) {
    const series = `weir_identity_provider_duration_seconds_count{provider="${provider}",outcome="answered"} 0`;
    expect(lines.filter((line) => line === series)).toHaveLength(1);
  }
});

test('the age of the keys is of the issuer whose keys are oldest', async () => {
  const metrics = createMetrics([{ kind: 'static', file: 'identities.yaml' }]);
  const ages = [9, 3];
  metrics.showKeysAge(() => ages[0] ?? 0);
  metrics.showKeysAge(() => ages[1] ?? 0);
  expect(await metrics.text()).toContain('weir_jwks_age_seconds 9\n');
  ages[0] = 1;
  expect(await metrics.text()).toContain('weir_jwks_age_seconds 3\n');
});

test('a tally without labels is zero before anything is counted', async () => {
  const registry = new Registry();
  new Tally(registry, NAME, HELP);
  expect(await registry.metrics()).toContain('weir_test 0');
});
