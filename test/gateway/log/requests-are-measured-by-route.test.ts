import { expect, it, onTestFinished } from 'vitest';
import { HttpMetrics } from '../../../src/observe/metrics/http-metrics.ts';
import { MOST_SERIES } from '../../../src/observe/metrics/labelled-histogram.ts';
import { Registry } from '../../../src/observe/metrics/prometheus-client.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { type HistogramPoint, plain, startCollector } from '../../fixtures/otlp-collector.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const WITHIN = { timeout: 30_000, interval: 100 };

async function start(isOn = true): Promise<TestGateway> {
  const gateway = await startGateway({ settings: { metrics: { http: isOn } } });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function countsOf(gateway: TestGateway): Promise<readonly string[]> {
  return (await gateway.metrics()).split('\n').filter((line) => /^http_\w+_seconds_count/.test(line));
}

it('requests and calls to the upstream are counted by the conventions, and the path of a client is no label', async () => {
  const gateway = await start();
  const { port } = new URL(gateway.upstream.url);
  await gateway.send('GET', '/v3/things?secret=1');
  await gateway.send('GET', '/v3/things', { token: null });
  await gateway.send('GET', '/v3/unlisted/1');
  await gateway.send('GET', '/v3/unlisted/2');
  const server = 'http_server_request_duration_seconds_count{url_scheme="http",http_request_method="GET"';
  const client = `http_client_request_duration_seconds_count{server_address="127.0.0.1",server_port="${port}",http_request_method="GET"`;
  const status = (code: number) => `http_response_status_code="${code}"`;
  const version = 'network_protocol_version="1.1"';
  await expect
    .poll(() => countsOf(gateway), WITHIN)
    .toEqual([
      `${server},http_route="/v3/things",${status(200)},${version}} 1`,
      `${server},http_route="/v3/things",${status(401)},${version}} 1`,
      `${server},${status(200)},${version}} 2`,
      `${client},${status(200)},${version}} 3`,
    ]);
  const text = await gateway.metrics();
  expect(text).not.toMatch(/v3\/unlisted|secret/);
  const bounds = [...text.matchAll(/^http_client_request_duration_seconds_bucket\{le="([^"]+)"/gm)];
  // https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#metric-httpclientrequestduration
  const advised = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
  expect(bounds.map(([, le]) => le)).toEqual([...advised.map(String), '+Inf']);
});

it("an error has its type: the gateway's own code, or the upstream's status", async () => {
  const upstream = await startUpstream((request, response) => {
    if (request.headers['x-broken'] === undefined) response.writeHead(500).end();
    else response.destroy();
  });
  const gateway = await startGateway({ upstream, settings: { metrics: { http: true } } });
  onTestFinished(() => gateway.close());
  await gateway.send('GET', '/v3/things');
  await gateway.send('GET', '/v3/things', { headers: { 'x-broken': 'yes' } });
  await expect.poll(async () => (await countsOf(gateway)).length, WITHIN).toBe(4);
  const counts = (await countsOf(gateway)).join('\n');
  expect(counts).toMatch(/^http_server.*="500",error_type="500",/m);
  expect(counts).toMatch(/^http_server.*="(502|503)",error_type="[A-Z]\w+",/m);
  expect(counts).toMatch(/^http_client.*="500",error_type="500",/m);
  expect(counts).toMatch(/^http_client.*"GET",error_type="[A-Z_]+",network/m);
});

it('a collector gets them by the names of the conventions', async () => {
  const collector = await startCollector();
  onTestFinished(() => collector.close());
  const variables = {
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRIC_EXPORT_INTERVAL: '20',
  };
  Object.assign(process.env, variables);
  const gateway = await start();
  for (const name of Object.keys(variables)) delete process.env[name];
  await gateway.send('GET', '/v3/things');
  const points = (kind: string) => {
    const metric = collector.metrics.at(-1)?.get(`http.${kind}.request.duration`);
    const [point] = (metric?.histogram?.dataPoints ?? []) as HistogramPoint[];
    return point && { unit: metric?.unit, count: point.count, ...plain(point.attributes) };
  };
  await expect
    .poll(() => points('server'), WITHIN)
    .toEqual({
      unit: 's',
      count: 1,
      'url.scheme': 'http',
      'http.request.method': 'GET',
      'http.route': '/v3/things',
      'http.response.status_code': 200,
      'network.protocol.version': '1.1',
    });
  expect(points('client')).toEqual({
    unit: 's',
    count: 1,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(gateway.upstream.url).port),
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'network.protocol.version': '1.1',
  });
});

it('is off by default', async () => {
  const gateway = await start(false);
  await gateway.send('GET', '/v3/things');
  expect(await gateway.metrics()).not.toMatch(/^(# \w+ )?http_/m);
});

it('more series than the limit are counted together', async () => {
  const registry = new Registry();
  const metrics = new HttpMetrics(registry);
  const record = (path: string) => {
    const context = {
      method: 'GET',
      startedMs: 0,
      operation: { path },
      source: { head: { httpVersion: '1.1' } },
    };
    metrics.record(context as Parameters<HttpMetrics['record']>[0], 200, 'http');
  };
  for (let count = 0; count < MOST_SERIES + 500; count++) record(`/${count}`);
  record('/1');
  const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('_count{'));
  expect(lines).toHaveLength(MOST_SERIES);
  expect(lines).toContain('http_server_request_duration_seconds_count{otel_metric_overflow="true"} 501');
  expect(lines[1]).toMatch(/http_route="\/1".* 2$/);
});
