import type { Logger } from 'pino';
import type { MetricSource } from '../metrics/metrics.ts';
import { METRICS, otlpProtocol, TRACES } from './signal.ts';
import type { Spans } from './spans.ts';

/** What is sent to a collector. */
export interface Telemetry {
  /** Undefined if requests are not traced. */
  readonly tracing: Spans | undefined;
  /** Exports what is left, for a few seconds at most. */
  close(): Promise<void>;
}

/**
 * Starts what the standard variables of OpenTelemetry turn on: traces, metrics or both. If nothing is on, none of its modules is
 * loaded.
 */
export async function startTelemetry(
  env: NodeJS.ProcessEnv,
  log: Logger,
  source: MetricSource,
): Promise<Telemetry> {
  const traces = otlpProtocol(TRACES, env, log);
  const metrics = otlpProtocol(METRICS, env, log);
  if (traces === undefined && metrics === undefined) return { tracing: undefined, async close() {} };
  const { openTelemetry } = await import('./open-telemetry.ts');
  return openTelemetry(traces, metrics, env, log, source);
}
