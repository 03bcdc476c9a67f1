import type {
  Histogram,
  MetricObjectWithValues,
  MetricValueWithName,
  Registry,
} from './prometheus-client.ts';

/** Series of a histogram: the default limit of OpenTelemetry's SDKs. Further ones are counted together. */
export const MOST_SERIES = 2_000;

interface LabelledBuckets {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  readonly labelNames: readonly string[];
  /** The label of the series that stands for all beyond the limit. */
  readonly overflow: string;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** One count for each bound, and one for values above all bounds. */
  readonly counts: Float64Array;
  sum: number;
}

/** The series whose labels begin with the same values. A look-up in six small maps takes a fraction of the time that joining the values does. */
interface Branch {
  readonly next: Map<string, Branch>;
  series?: Series;
}

type Value = MetricValueWithName<string>;

/** A histogram with labels that keeps plain numbers, and converts them to the Prometheus format on a scrape. */
export class LabelledHistogram {
  readonly name: string;
  readonly type = 'histogram';
  readonly #help: string;
  readonly #shape: LabelledBuckets;
  readonly #root: Branch = { next: new Map() };
  readonly #series: Series[] = [];
  #overflow: Series | undefined;

  constructor(registry: Registry, name: string, help: string, shape: LabelledBuckets) {
    this.name = name;
    this.#help = help;
    this.#shape = shape;
    // The registry uses only the name and `get` of a metric.
    registry.registerMetric(this as unknown as Histogram);
  }

  /** @param values of the labels, in their order. An empty one is left out. */
  observe(value: number, values: readonly string[]): void {
    const series = this.#find(values) ?? this.#open(values);
    const { bounds } = this.#shape;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] ?? 0)) index++;
    series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.sum += value;
  }

  async get(): Promise<MetricObjectWithValues<Value>> {
    const { name, type } = this;
    const values = this.#series.flatMap((series) => this.#valuesOf(series));
    // prom-client's types use an enum, but its code uses strings.
    const described = { name, help: this.#help, type, values, aggregator: 'sum' };
    return described as unknown as MetricObjectWithValues<Value>;
  }

  #find(values: readonly string[]): Series | undefined {
    let branch: Branch | undefined = this.#root;
    for (const value of values) branch = branch?.next.get(value);
    return branch?.series;
  }

  #open(values: readonly string[]): Series {
    if (this.#overflow !== undefined) return this.#overflow;
    const { labelNames, overflow } = this.#shape;
    const isFull = this.#series.length >= MOST_SERIES - 1;
    const named = labelNames.flatMap((name, index) => (values[index] ? [[name, values[index]]] : []));
    const labels = isFull ? { [overflow]: 'true' } : Object.fromEntries(named);
    const opened = { labels, counts: new Float64Array(this.#shape.bounds.length + 1), sum: 0 };
    this.#series.push(opened);
    if (isFull) this.#overflow = opened;
    else this.#place(values).series = opened;
    return opened;
  }

  #place(values: readonly string[]): Branch {
    let branch = this.#root;
    for (const value of values) {
      const next: Branch = branch.next.get(value) ?? { next: new Map() };
      branch.next.set(value, next);
      branch = next;
    }
    return branch;
  }

  #valuesOf({ labels, counts, sum }: Series): readonly Value[] {
    let count = 0;
    const buckets = [...counts].map((own, index) => {
      count += own;
      const le = this.#shape.bounds[index] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, value: count, labels: { le, ...labels } };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, value: sum, labels },
      { metricName: `${this.name}_count`, value: count, labels },
    ];
  }
}
