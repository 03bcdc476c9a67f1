import { pino } from 'pino';
import { expect, it } from 'vitest';
import { startTracing } from '../../../src/observe/tracing/start.ts';

async function startWith(env: NodeJS.ProcessEnv): Promise<{ isOn: boolean; log: string }> {
  let log = '';
  const write = (line: string) => {
    log += line;
  };
  const output = pino({}, { write });
  const tracing = await startTracing(env, output);
  await tracing?.close();
  return { isOn: tracing !== undefined, log };
}

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

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
