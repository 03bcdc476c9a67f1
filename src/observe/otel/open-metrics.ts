import type { Resource } from '@opentelemetry/resources';
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import type { Logger } from 'pino';
import type { Metrics } from '../metrics/metrics.ts';
import { PrometheusProducer } from './prometheus-producer.ts';
import type { OtlpProtocol } from './signal.ts';

/** The defaults of OpenTelemetry's specification. */
const INTERVAL_MS = 60_000;
const TIMEOUT_MS = 30_000;

/** Opens the part of the SDK that sends metrics: those of the Prometheus endpoint, under the same names. */
export async function openMetrics(
  protocol: OtlpProtocol,
  resource: Resource,
  env: NodeJS.ProcessEnv,
  log: Logger,
  source: Pick<Metrics, 'read'>,
): Promise<MeterProvider> {
  const { OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: temporality = 'cumulative' } = env;
  if (!/^(cumulative)?$/i.test(temporality))
    log.warn({ temporality }, 'metrics are exported as cumulative sums: no other temporality is available');
  const exportIntervalMillis = positiveMs(env, 'OTEL_METRIC_EXPORT_INTERVAL', INTERVAL_MS, log);
  const timeoutMs = positiveMs(env, 'OTEL_METRIC_EXPORT_TIMEOUT', TIMEOUT_MS, log);
  const reader = new PeriodicExportingMetricReader({
    exporter: await exporterOf(protocol),
    metricProducers: [new PrometheusProducer(source)],
    exportIntervalMillis,
    // A longer one is an error of the SDK.
    exportTimeoutMillis: Math.min(timeoutMs, exportIntervalMillis),
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function positiveMs(env: NodeJS.ProcessEnv, variable: string, fallback: number, log: Logger): number {
  const text = env[variable]?.trim() || `${fallback}`;
  // What is longer does not fit a timer.
  const isValid = /^\d{1,9}$/.test(text) && Number(text) > 0;
  if (!isValid)
    log.warn({ variable, text, used: fallback }, 'a time of OpenTelemetry must be in milliseconds');
  return isValid ? Number(text) : fallback;
}

async function exporterOf(protocol: OtlpProtocol): Promise<PushMetricExporter> {
  const { OTLPMetricExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-metrics-otlp-http')
      : await import('@opentelemetry/exporter-metrics-otlp-proto');
  return new OTLPMetricExporter();
}
