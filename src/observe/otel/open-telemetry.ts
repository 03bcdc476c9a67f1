import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import type { Logger } from 'pino';
import { version } from '../../config/package.ts';
import { withinMs } from '../../domain/awaitable.ts';
import { quietly } from '../log/process-output.ts';
import type { MetricSource } from '../metrics/metrics.ts';
import { endpointOf, METRICS, type OtlpProtocol, TRACES } from './signal.ts';
import type { Telemetry } from './start-telemetry.ts';

/** How long a gateway that stops waits for its collector. */
const CLOSE_MS = 3_000;

/**
 * Opens the SDK of OpenTelemetry. It reads its own `OTEL_*` variables: endpoint, headers, sampler, batches, resource.
 *
 * @param traces the protocol of traces; undefined if they are off
 * @param metrics the protocol of metrics, likewise
 */
export async function openTelemetry(
  traces: OtlpProtocol | undefined,
  metrics: OtlpProtocol | undefined,
  env: NodeJS.ProcessEnv,
  log: Logger,
  source: MetricSource,
): Promise<Telemetry> {
  const warn = warnings(log);
  const own = resourceFromAttributes({ 'service.name': 'weir', 'service.version': version });
  const resource = defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }));
  const open: { shutdown(): Promise<void> }[] = [];
  let tracing: Telemetry['tracing'];
  if (traces !== undefined) {
    const { openTracing } = await import('./spans.ts');
    const traced = await openTracing(traces, resource);
    tracing = traced.tracing;
    open.push(traced.provider);
    log.info({ endpoint: endpointOf(TRACES, env), protocol: traces }, 'requests are traced');
  }
  if (metrics !== undefined) {
    const { openMetrics } = await import('./open-metrics.ts');
    open.push(await openMetrics(metrics, resource, env, log, source));
    log.info({ endpoint: endpointOf(METRICS, env), protocol: metrics }, 'metrics are exported');
  }
  return {
    tracing,
    async close() {
      const ended = open.map((provider) => provider.shutdown().catch((error) => warn(String(error))));
      await withinMs(Promise.all(ended), CLOSE_MS);
    },
  };
}

/** Sends what OpenTelemetry reports to the log; a text that repeats, once a minute. */
function warnings(log: Logger): (problem: string) => void {
  const isNew = quietly(() => performance.now());
  const warn = (text: string, ...more: readonly unknown[]) => {
    const problem = [text, ...more].flatMap((part) => textOf(part) ?? []).join(' ');
    if (isNew(problem)) log.warn({ problem }, 'OpenTelemetry reports a problem');
  };
  const silent = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return warn;
}

/** A part of a report: a text, which may be the name of what reports, or an error. Undefined for data, such as a body. */
function textOf(part: unknown): string | undefined {
  if (part instanceof Error) return part.message;
  return typeof part === 'string' ? problemIn(part) : undefined;
}

/** The SDK reports an error as JSON with its stack. */
function problemIn(text: string): string {
  try {
    const { message, code } = JSON.parse(text) as { readonly message?: unknown; readonly code?: unknown };
    return String(message || code || text);
  } catch {
    return text;
  }
}
