/** A counter and a histogram for what every request updates. They keep plain numbers, which prom-client gets on a scrape. */
import {
  Counter,
  type Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from './prometheus-client.ts';

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

interface Cell {
  readonly labels: Record<string, string>;
  count: number;
  /** How much of the count prom-client has. */
  scraped: number;
}

/**
 * A counter for events that occur on every request. It adds plain numbers and updates prom-client on a scrape, because
 * prom-client's counter allocates and hashes an object for each increment.
 */
export class Tally {
  readonly #labelNames: readonly string[];
  readonly #entries: Cell[] = [];
  /** Entries by label values, in nested maps. */
  readonly #byValue = new Map<string, Map<string, Map<string, Cell>>>();

  /**
   * @param labelNames at most three. Label values must never come from a request, because each combination is kept forever.
   * @param known label values that are shown from the start, with 0
   */
  constructor(
    registry: Registry,
    name: string,
    help: string,
    labelNames: readonly string[] = [],
    known: Iterable<readonly string[]> = [],
  ) {
    this.#labelNames = labelNames;
    const entries = this.#entries;
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect() {
        for (const entry of entries) {
          this.inc(entry.labels, entry.count - entry.scraped);
          entry.scraped = entry.count;
        }
      },
    });
    for (const [first, second, third] of known) this.add(0, first, second, third);
  }

  /** Takes the label values in the order of `labelNames`. */
  add(count: number, first = '', second = '', third = ''): void {
    const entry = this.#byValue.get(first)?.get(second)?.get(third) ?? this.#open(first, second, third);
    entry.count += count;
  }

  /** The sum of all counts so far, or of those whose labels match. */
  sum(isMeant: (labels: Readonly<Record<string, string>>) => boolean = () => true): number {
    return this.#entries.reduce((sum, { labels, count }) => (isMeant(labels) ? sum + count : sum), 0);
  }

  #open(first: string, second: string, third: string): Cell {
    const values = [first, second, third];
    const labels = Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? '']));
    const entry = { labels, count: 0, scraped: 0 };
    const seconds = this.#byValue.get(first) ?? new Map<string, Map<string, Cell>>();
    const thirds = seconds.get(second) ?? new Map<string, Cell>();
    this.#byValue.set(first, seconds.set(second, thirds.set(third, entry)));
    this.#entries.push(entry);
    return entry;
  }
}
