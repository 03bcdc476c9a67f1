import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { type Collector, type ReceivedSpan, startCollector } from '../../fixtures/otlp-collector.ts';
import { startUpstream } from '../../fixtures/upstream.ts';
import { startWeir } from '../../fixtures/weir-process.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';

let collector: Collector;
let gateway: TestGateway;

beforeAll(async () => {
  collector = await startCollector();
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_BSP_SCHEDULE_DELAY: '10',
  };
  Object.assign(process.env, variables);
  gateway = await startGateway({ settings: { log: { level: 'info' } } });
  for (const name of Object.keys(variables)) delete process.env[name];
});
afterAll(async () => {
  await gateway.close();
  collector.close();
});

const WITHIN = { timeout: 30_000, interval: 20 };

/** Sends a request, and waits for its spans by name. */
async function trace(
  headers: Record<string, string>,
  names: readonly string[],
  { path = '/v3/things', token }: { path?: string; token?: null } = {},
) {
  const known = collector.spans.length;
  const sent = token === undefined ? { headers } : { headers, token };
  const { status } = await gateway.send('GET', path, sent);
  await expect
    .poll(() => collector.spans.slice(known).map(({ name }) => name), WITHIN)
    .toHaveLength(names.length);
  const spans = collector.spans.slice(known);
  expect(spans.map(({ name }) => name).sort()).toEqual([...names].sort());
  const find = (name: string) => spans.find((span) => span.name === name) as ReceivedSpan;
  return { status, find, seen: gateway.upstream.seen.at(-1)?.headers };
}

it("has a span of the request, the charge and the upstream, whose traceparent names the upstream's span", async () => {
  const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;
  const { find, seen } = await trace(
    { traceparent, tracestate: 'congo=t61rcWkgMzE', 'X-Request-Id': 'traced-1' },
    ['GET /v3/things', 'charge', 'GET'],
  );
  const [request, charge, upstream] = [find('GET /v3/things'), find('charge'), find('GET')];
  expect(request).toMatchObject({ traceId: TRACE_ID, parentSpanId: PARENT_ID, kind: 2 });
  for (const span of [charge, upstream]) {
    expect(span).toMatchObject({ traceId: TRACE_ID, parentSpanId: request.spanId });
    expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(request.startTimeUnixNano));
    expect(BigInt(span.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(request.endTimeUnixNano));
  }
  expect(upstream.kind).toBe(3);
  expect(seen).toMatchObject({
    traceparent: `00-${TRACE_ID}-${upstream.spanId}-01`,
    tracestate: 'congo=t61rcWkgMzE',
  });
  expect(request.attributes).toMatchObject({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'url.path': '/v3/things',
    'url.scheme': 'http',
    'http.route': '/v3/things',
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(gateway.url).port),
    'network.protocol.version': '1.1',
    'client.address': '127.0.0.1',
    'weir.request_id': 'traced-1',
    'weir.operation': 'listThings',
    'weir.account': 'acct_1',
    'weir.outcome': 'admitted',
  });
  expect(charge.attributes).toEqual({ 'weir.cost': 1, 'weir.outcome': 'admitted' });
  expect(upstream.attributes).toMatchObject({
    'http.request.method': 'GET',
    'url.full': `${gateway.upstream.url}/v3/things`,
    'network.protocol.version': '1.1',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(gateway.upstream.url).port),
  });
  expect(collector.resources[0]).toMatchObject({
    'service.name': 'weir',
    'service.version': expect.any(String),
    'deployment.environment.name': 'test',
  });
  expect(linesOf(gateway, 'request').at(-1)?.traceId).toBe(TRACE_ID);
});

it('a refused request has one span, in a trace of its own', async () => {
  const { status, find } = await trace({ traceparent: 'nonsense' }, ['GET /v3/things'], { token: null });
  expect(status).toBe(401);
  const { traceId, parentSpanId, attributes } = find('GET /v3/things');
  expect(parentSpanId ?? '').toBe('');
  expect(attributes).toMatchObject({ 'weir.outcome': 'refused', 'weir.reason': 'Unauthenticated' });
  expect(linesOf(gateway, 'request').at(-1)?.traceId).toBe(traceId);
});

it('a trace that is not sampled is passed on as such, and not recorded', async () => {
  const known = collector.spans.length;
  await gateway.send('GET', '/v3/things', { headers: { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` } });
  expect(gateway.upstream.seen.at(-1)?.headers.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-.{16}-00$`));
  await trace({}, ['GET /v3/things', 'charge', 'GET']);
  expect(collector.spans.slice(known).filter(({ traceId }) => traceId === TRACE_ID)).toEqual([]);
});

it('a method that OpenTelemetry does not know is _OTHER', async () => {
  const known = collector.spans.length;
  expect((await gateway.send('PROPFIND', '/v3/things')).status).toBe(405);
  await expect.poll(() => collector.spans.slice(known), WITHIN).toHaveLength(1);
  const [span] = collector.spans.slice(known);
  expect(span?.name).toBe('HTTP');
  expect(span?.attributes).toMatchObject({
    'http.request.method': '_OTHER',
    'http.request.method_original': 'PROPFIND',
  });
});

it('no token, query or body is in a span', async () => {
  const path = '/v3/things?filter=secret-query';
  await trace({ Cookie: 'secret-cookie' }, ['GET /v3/things', 'charge', 'GET'], { path });
  expect(JSON.stringify(collector.spans)).not.toMatch(/secret|Bearer/);
});

/**
 * Prints every file with a module of OpenTelemetry's SDK or exporters that the process loads. The bundler writes the path of a module
 * above its code. prom-client always loads the API.
 */
const WATCH = `
export async function load(url, context, next) {
  const found = await next(url, context);
  const isTelemetry = /^\\/\\/ node_modules\\/@opentelemetry\\/(?!api\\/)/m.test(found.source ?? '');
  if (isTelemetry) process._rawDebug('loaded ' + url);
  return found;
}`;
const dataUrl = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
const REGISTER = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(WATCH))});`;

it('without the variables nothing is traced, and neither SDK nor exporters of OpenTelemetry are loaded', async () => {
  const upstream = await startUpstream();
  const watched = { NODE_OPTIONS: `--import=${dataUrl(REGISTER)}` };
  const loadedWith = async (env: NodeJS.ProcessEnv) => {
    const weir = await startWeir({ upstreamUrl: upstream.url }, { ...watched, ...env });
    const answer = await fetch(`${weir.url}/v3/things`, { headers: { Authorization: 'Bearer service' } });
    expect(answer.status).toBe(200);
    await weir.close();
    return weir.errorLines.filter((line) => line.startsWith('loaded ')).length;
  };
  try {
    expect(await loadedWith({})).toBe(0);
    const received = collector.requests.length;
    const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '600000' };
    expect(await loadedWith(traced)).toBeGreaterThan(0);
    // What was left at the end was exported, by default as Protobuf.
    const sent = collector.requests.slice(received).map(({ url, contentType }) => ({ url, contentType }));
    expect(sent.sort((a, b) => `${a.url}`.localeCompare(`${b.url}`))).toEqual([
      { url: '/v1/metrics', contentType: 'application/x-protobuf' },
      { url: '/v1/traces', contentType: 'application/x-protobuf' },
    ]);
  } finally {
    await upstream.close();
  }
});
