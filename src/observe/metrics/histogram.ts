import type { Histogram, MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';

/** Histogram buckets in seconds, from a charge answered from memory to a request close to its timeout. */
export const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * A histogram without labels that records a value in a few nanoseconds. It keeps plain numbers and converts them to the
 * Prometheus format on a scrape. prom-client's histogram allocates a closure, an object and a hash for each value, which
 * took a tenth of the gateway's CPU time at three values per request.
 */
export class PlainHistogram {
  readonly name: string;
  readonly type = 'histogram';
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** One count for each bound, and one for values above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param buckets upper bounds, ascending */
  constructor(registry: Registry, name: string, help: string, buckets: readonly number[]) {
    this.name = name;
    this.#help = help;
    this.#bounds = buckets;
    this.#counts = new Float64Array(buckets.length + 1);
    // The registry uses only the name and `get` of a metric.
    registry.registerMetric(this as unknown as Histogram);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] ?? 0)) index++;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += value;
  }

  /** How many values each bucket has had so far; the last count is of values above all bounds. */
  counts(): readonly number[] {
    return [...this.#counts];
  }

  async get(): Promise<MetricObjectWithValues<MetricValueWithName<'le'>>> {
    const values: MetricValueWithName<'le'>[] = [];
    let count = 0;
    for (const [index, own] of this.#counts.entries()) {
      count += own;
      values.push(this.#value('_bucket', count, { le: this.#bounds[index] ?? '+Inf' }));
    }
    values.push(this.#value('_sum', this.#sum), this.#value('_count', count));
    const { name, type } = this;
    // prom-client's types use an enum, but its code uses strings.
    const described = { name, help: this.#help, type, values, aggregator: 'sum' };
    return described as unknown as MetricObjectWithValues<MetricValueWithName<'le'>>;
  }

  #value(suffix: string, value: number, labels: { le?: number | string } = {}): MetricValueWithName<'le'> {
    return { metricName: `${this.name}${suffix}`, value, labels };
  }
}
