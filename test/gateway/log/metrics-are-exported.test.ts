import { expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import {
  type Collector,
  type HistogramPoint,
  type NumberPoint,
  plain,
  startCollector,
} from '../../fixtures/otlp-collector.ts';

const WITHIN = { timeout: 30_000, interval: 20 };

/** A gateway that exports metrics every 20 ms. */
async function startExporting(endpoint: string, env: Record<string, string> = {}): Promise<TestGateway> {
  const variables = {
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${endpoint}/v1/metrics`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRIC_EXPORT_INTERVAL: '20',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    ...env,
  };
  Object.assign(process.env, variables);
  try {
    return await startGateway({ settings: { log: { level: 'info' } } });
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

async function withCollector(
  env: Record<string, string>,
  use: (gateway: TestGateway, collector: Collector) => Promise<void>,
): Promise<void> {
  const collector = await startCollector();
  const gateway = await startExporting(collector.url, env);
  try {
    await use(gateway, collector);
  } finally {
    await gateway.close();
    collector.close();
  }
}

/** The metrics of an export that began after this was called. */
async function nextExport(collector: Collector) {
  const begun = collector.metrics.length + 1;
  await expect.poll(() => collector.metrics.length, WITHIN).toBeGreaterThan(begun);
  return collector.metrics.at(-1) ?? new Map();
}

/** The lines of the Prometheus text that are no comments, by metric and labels. */
async function scraped(gateway: TestGateway): Promise<ReadonlyMap<string, number>> {
  const lines = (await gateway.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(line.replace(/^.* /, ''))]));
}

function nameOf(name: string, { attributes }: Pick<NumberPoint, 'attributes'>): string {
  const labels = Object.entries(plain(attributes)).map(([label, value]) => `${label}="${value}"`);
  return labels.length === 0 ? name : `${name}{${labels.join(',')}}`;
}

it('the collector receives what Prometheus scrapes: counters, gauges and histograms', async () => {
  await withCollector({}, async (gateway, collector) => {
    for (let index = 0; index < 5; index++) await gateway.send('GET', '/v3/things');
    const metrics = await nextExport(collector);
    const text = await scraped(gateway);
    const sums = [...metrics.values()].flatMap(({ name, sum }) => {
      if (sum !== undefined) expect(sum).toMatchObject({ isMonotonic: true, aggregationTemporality: 2 });
      return (sum?.dataPoints ?? []).map((point: NumberPoint) => [nameOf(name, point), point.asDouble]);
    });
    const own = sums.filter(([name]) => `${name}`.startsWith('weir_'));
    expect(own.length).toBeGreaterThan(100);
    expect(own).toEqual(own.map(([name]) => [name, text.get(`${name}`)]));
    expect(own).toContainEqual([
      'weir_requests_total{kind="read",bucket="account-read",outcome="admitted"}',
      5,
    ]);

    const gauges = [...metrics.values()].filter(({ gauge }) => gauge !== undefined).map(({ name }) => name);
    expect(gauges).toEqual(expect.arrayContaining(['weir_build_info', 'process_resident_memory_bytes']));

    const { unit, histogram } = metrics.get('weir_request_duration_seconds') ?? {};
    expect(unit).toBe('s');
    const point = histogram?.dataPoints[0] as HistogramPoint;
    expect(point.count).toBe(5);
    expect(point.bucketCounts).toHaveLength(point.explicitBounds.length + 1);
    expect(point.bucketCounts.reduce((total, count) => total + count, 0)).toBe(5);
    let total = 0;
    for (const [index, bound] of point.explicitBounds.entries()) {
      total += point.bucketCounts[index] ?? 0;
      expect(total).toBe(text.get(`weir_request_duration_seconds_bucket{le="${bound}"}`));
    }
    expect(BigInt(point.startTimeUnixNano)).toBeLessThan(BigInt(point.timeUnixNano));
    expect(collector.resources[0]).toMatchObject({
      'service.name': 'weir',
      // Replicas would count for each other without it.
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'deployment.environment.name': 'test',
    });
    expect(collector.requests.every(({ url }) => url === '/v1/metrics')).toBe(true);
  });
});

/** The names of the metrics with a value. */
function namesIn(text: string): readonly string[] {
  const described = [...text.matchAll(/^# TYPE (\S+) \w+$/gm)].map(([, name = '']) => name);
  return described.filter((name) => new RegExp(`^${name}(_count)?(\\{.*\\})? `, 'm').test(text));
}

it('every metric of the text is exported', async () => {
  await withCollector({}, async (gateway, collector) => {
    await gateway.send('GET', '/v3/things');
    // Some get their first value in the meantime, such as the metrics of a garbage collection. Others have none for a moment,
    // such as the mean of the event loop's lag right after it was read.
    const onlyIn = async () => {
      const before = namesIn(await gateway.metrics());
      const exported = [...(await nextExport(collector)).keys()];
      const after = namesIn(await gateway.metrics());
      return {
        text: before.filter((name) => !exported.includes(name)),
        exported: exported.filter((name) => !after.includes(name)),
      };
    };
    await expect.poll(onlyIn).toEqual({ text: [], exported: [] });
  });
});

it('a counter never runs back, and its start stays', async () => {
  await withCollector({}, async (gateway, collector) => {
    const pointOf = async () =>
      (await nextExport(collector))
        .get('weir_requests_total')
        ?.sum?.dataPoints.find((point: NumberPoint) => nameOf('', point).includes('"admitted"'));
    const first = await pointOf();
    await gateway.send('GET', '/v3/things');
    const second = await pointOf();
    expect(second?.startTimeUnixNano).toBe(first?.startTimeUnixNano);
    expect(second?.asDouble).toBe((first?.asDouble ?? 0) + 1);
  });
});

it('by default they are sent as Protobuf, and once more at the end', async () => {
  const collector = await startCollector();
  const gateway = await startExporting(collector.url, {
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_METRIC_EXPORT_INTERVAL: '600000',
  });
  await gateway.send('GET', '/v3/things');
  await gateway.close();
  collector.close();
  expect(collector.requests.map(({ contentType }) => contentType)).toEqual(['application/x-protobuf']);
  expect(collector.requests[0]?.body.includes('weir_requests_total')).toBe(true);
});

it('without its collector the gateway serves, says so in the log, and stops in time', async () => {
  const collector = await startCollector();
  collector.close();
  const gateway = await startExporting(collector.url);
  const { status } = await gateway.send('GET', '/v3/things');
  expect(status).toBe(200);
  await expect
    .poll(() => linesOf(gateway, 'OpenTelemetry reports a problem').length, WITHIN)
    .toBeGreaterThan(0);
  expect(await gateway.metrics()).toContain('weir_requests_total');
  await gateway.close();
});
