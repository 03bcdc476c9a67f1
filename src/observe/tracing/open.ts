import { setTimeout } from 'node:timers/promises';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { version } from '../../config/package.ts';
import { quietly } from '../log/process-output.ts';
import { Spans } from './spans.ts';
import type { OtlpProtocol, RunningTracing } from './start.ts';

/** How long a gateway that stops waits for its collector. */
const CLOSE_MS = 3_000;

/** Opens the SDK of OpenTelemetry. It reads its own `OTEL_*` variables: endpoint, headers, sampler, batches, resource. */
export async function openTracing(
  protocol: OtlpProtocol,
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<RunningTracing> {
  const warn = warnings(log);
  const own = resourceFromAttributes({ 'service.name': 'weir', 'service.version': version });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(await exporterOf(protocol))],
  });
  const spans = new Spans(provider.getTracer('weir', version));
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  log.info({ endpoint, protocol }, 'requests are traced');
  return {
    begin: (request, method, startedMs) => spans.begin(request, method, startedMs),
    async close() {
      const waited = new AbortController();
      const late = setTimeout(CLOSE_MS, undefined, { signal: waited.signal }).catch(() => undefined);
      await Promise.race([provider.shutdown().catch((error) => warn(String(error))), late]);
      waited.abort();
    },
  };
}

/** Sends what OpenTelemetry reports to the log; a text that repeats, once a minute. */
function warnings(log: Logger): (problem: string) => void {
  const isNew = quietly(() => performance.now());
  const warn = (problem: string) => {
    if (isNew(problem)) log.warn({ problem }, 'OpenTelemetry reports a problem');
  };
  const silent = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return warn;
}

async function exporterOf(protocol: OtlpProtocol): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}
