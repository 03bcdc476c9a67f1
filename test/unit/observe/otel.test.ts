import { diag } from '@opentelemetry/api';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { startTelemetry } from '../../../src/observe/otel/start-telemetry.ts';

async function startWith(env: NodeJS.ProcessEnv): Promise<{ isOn: boolean; log: string }> {
  let log = '';
  const write = (line: string) => {
    log += line;
  };
  const output = pino({}, { write });
  const telemetry = await startTelemetry(env, output, { read: async () => [] });
  await telemetry.close();
  return { isOn: telemetry.tracing !== undefined, log };
}

/** With traces alone: nothing listens at the endpoint. */
const ENDPOINT = { OTEL_METRICS_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

it.each<NodeJS.ProcessEnv>([
  {},
  { OTEL_SERVICE_NAME: 'weir' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  { OTEL_TRACES_EXPORTER: 'none' },
  { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' },
])('%j leaves tracing off', async (env) => {
  expect(await startWith(env)).toEqual({ isOn: false, log: '' });
});

it.each<NodeJS.ProcessEnv>([
  ENDPOINT,
  { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' },
  { OTEL_TRACES_EXPORTER: 'otlp' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'false', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
])('%j turns it on', async (env) => {
  const { isOn, log } = await startWith(env);
  expect(isOn).toBe(true);
  expect(log).toContain('requests are traced');
});

it('what is not available is in the log, and the gateway starts', async () => {
  expect(await startWith({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual({
    isOn: false,
    log: expect.stringContaining('must be http/protobuf or http/json'),
  });
  expect(await startWith({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' })).toEqual({
    isOn: false,
    log: expect.stringContaining('only otlp and none'),
  });
});

it.each(['collector:4318', '127.0.0.1:4318', 'collector', 'grpc://collector:4317'])(
  'nothing is sent, and the log says so, if the endpoint is no URL: %s',
  async (endpoint) => {
    const { isOn, log } = await startWith({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
    expect(isOn).toBe(false);
    for (const off of ['requests are not traced', 'metrics are not exported'])
      expect(log).toContain(
        `${off}: OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://collector:4318`,
      );
    expect(log).not.toMatch(/are traced|are exported/);
  },
);

it.each<[NodeJS.ProcessEnv, string]>([
  [{ ...ENDPOINT, OTEL_METRICS_EXPORTER: 'prometheus' }, ''],
  [
    { OTEL_METRICS_EXPORTER: 'console' },
    'only otlp, none and prometheus are available as OTEL_METRICS_EXPORTER',
  ],
  [
    { OTEL_METRICS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'grpc' },
    'metrics are not exported: ',
  ],
])('%j exports no metrics', async (env, text) => {
  const { log } = await startWith({ ...env, OTEL_TRACES_EXPORTER: 'none' });
  expect(log).toContain(text);
  expect(log).not.toContain('metrics are exported');
});

it.each<[NodeJS.ProcessEnv, string]>([
  [{ OTEL_METRIC_EXPORT_INTERVAL: 'soon' }, 'a time of OpenTelemetry must be in milliseconds'],
  [{ OTEL_METRIC_EXPORT_INTERVAL: '0' }, 'a time of OpenTelemetry must be in milliseconds'],
  [{ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta' }, 'no other temporality is available'],
  // A time-out that is longer than the interval would be an error of the SDK.
  [{ OTEL_METRIC_EXPORT_INTERVAL: '100', OTEL_METRIC_EXPORT_TIMEOUT: '5000' }, ''],
])('%j exports metrics all the same', async (env, text) => {
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '50';
  const { log } = await startWith({ OTEL_METRICS_EXPORTER: 'otlp', ...env });
  expect(log).toContain(text);
  delete process.env.OTEL_EXPORTER_OTLP_TIMEOUT;
  expect(log).toContain('metrics are exported');
});

it.each([
  ['{"stack":"Error: refused\\n    at file:1","message":"refused","code":"ECONNREFUSED"}', 'refused'],
  ['{"stack":"AggregateError","message":"","code":"ECONNREFUSED"}', 'ECONNREFUSED'],
  ['no JSON', 'no JSON'],
  ['null', 'null'],
])('what the SDK reports is a sentence in the log: %j', async (text, problem) => {
  const problems: string[] = [];
  const output = pino({}, { write: (line: string) => void problems.push(JSON.parse(line).problem) });
  const telemetry = await startTelemetry(ENDPOINT, output, { read: async () => [] });
  diag.error(text);
  await telemetry.close();
  expect(problems).toContain(problem);
});

it('what a collector refuses is in the log with its reason', async () => {
  const problems: string[] = [];
  const output = pino({}, { write: (line: string) => void problems.push(JSON.parse(line).problem) });
  const telemetry = await startTelemetry(ENDPOINT, output, { read: async () => [] });
  diag.warn('Received Partial Success response:', '{"rejectedSpans":3,"errorMessage":"quota"}');
  diag
    .createComponentLogger({ namespace: 'OTLPExportDelegate' })
    .warn('no answer that can be read', new Error('truncated'), Buffer.from('secret'));
  await telemetry.close();
  expect(problems).toContain('Received Partial Success response: {"rejectedSpans":3,"errorMessage":"quota"}');
  expect(problems).toContain('OTLPExportDelegate no answer that can be read truncated');
});
