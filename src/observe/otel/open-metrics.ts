import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import { emptyResource, type Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import type { Logger } from 'pino';
import { version } from '../../config/package.ts';
import { CONVENTIONAL_NAMES, conventionalAttributes } from '../metrics/http-metrics.ts';
import type { MetricReading, MetricSource, MetricValue } from '../metrics/metrics.ts';
import type { OtlpProtocol } from './signal.ts';

/** The defaults of OpenTelemetry's specification. */
const INTERVAL_MS = 60_000;
const TIMEOUT_MS = 30_000;

/** Opens the part of the SDK that sends metrics. They are the metrics of the Prometheus endpoint. */
export async function openMetrics(
  protocol: OtlpProtocol,
  resource: Resource,
  env: NodeJS.ProcessEnv,
  log: Logger,
  source: MetricSource,
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

/** Every count of this process begins here. */
const STARTED = hrTime(performance.timeOrigin);

/**
 * Gives OpenTelemetry the metrics of the Prometheus endpoint, so that each metric is defined once. They keep their names, except
 * that HTTP metrics have the names of the conventions. Counters and histograms are cumulative since the start of the process.
 */
class PrometheusProducer implements MetricProducer {
  readonly #source: MetricSource;

  constructor(source: MetricSource) {
    this.#source = source;
  }

  async collect(): Promise<CollectionResult> {
    const readings = await this.#source.read();
    const endTime = hrTime(Date.now());
    const metrics = readings.flatMap((reading) => metricOf(reading, endTime) ?? []);
    const scopeMetrics = [{ scope: { name: 'weir', version }, metrics }];
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
  }
}

/** Undefined for a metric without a value, and for types that OpenTelemetry does not have. */
function metricOf(reading: MetricReading, endTime: HrTime): MetricData | undefined {
  const { help, type } = reading;
  const isConventional = CONVENTIONAL_NAMES.has(reading.name);
  const name = CONVENTIONAL_NAMES.get(reading.name) ?? reading.name;
  const common = {
    descriptor: { name, description: help, unit: unitOf(reading.name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const values = reading.values.filter(({ value }) => Number.isFinite(value));
  if (values.length === 0) return undefined;
  const point = <T>(attributes: Attributes, value: T): DataPoint<T> => {
    return { startTime: STARTED, endTime, attributes, value };
  };
  const numbers = () => values.map(({ labels, value }) => point(labels, value));
  switch (type) {
    case 'counter':
      return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: numbers() };
    case 'gauge':
      return { ...common, dataPointType: DataPointType.GAUGE, dataPoints: numbers() };
    case 'histogram': {
      const dataPoints = histogramsIn(values).map(([labels, histogram]) =>
        point(isConventional ? conventionalAttributes(labels) : labels, histogram),
      );
      return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
    }
    default:
      return undefined;
  }
}

/** In the codes of UCUM. */
function unitOf(name: string): string {
  const [, unit] = /_(seconds|bytes)(?:_total)?$/.exec(name) ?? [];
  if (unit === undefined) return '';
  return unit === 'bytes' ? 'By' : 's';
}

/** The histograms of a metric by their labels, each with its own counts per bucket. */
function histogramsIn(values: readonly MetricValue[]): readonly [Attributes, Histogram][] {
  // `totals` are of Prometheus: each includes those below.
  const byLabels = new Map<
    string,
    { labels: Attributes; boundaries: number[]; totals: number[]; sum: number; count: number }
  >();
  for (const { labels: all, metricName = '', value } of values) {
    const { le, ...labels } = all;
    const key = JSON.stringify(labels);
    const buckets = byLabels.get(key) ?? { labels, boundaries: [], totals: [], sum: 0, count: 0 };
    byLabels.set(key, buckets);
    if (metricName.endsWith('_sum')) buckets.sum = value;
    else if (metricName.endsWith('_count')) buckets.count = value;
    else if (le !== '+Inf') {
      buckets.boundaries.push(Number(le));
      buckets.totals.push(value);
    }
  }
  return [...byLabels.values()].map(({ labels, boundaries, totals, sum, count }) => {
    const counts = [...totals, count].map((total, index) => total - (totals[index - 1] ?? 0));
    return [labels, { buckets: { boundaries, counts }, sum, count }];
  });
}

function hrTime(unixMs: number): HrTime {
  const seconds = Math.floor(unixMs / 1_000);
  return [seconds, Math.floor((unixMs - seconds * 1_000) * 1e6)];
}
