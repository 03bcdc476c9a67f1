/**
 * The client library of Prometheus, for the rest of this folder. `@prometheus-io/client`, which replaces prom-client, needs Node 22: this is
 * the only file that then changes (docs/dependencies.md).
 */
export {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  Registry,
} from 'prom-client';
