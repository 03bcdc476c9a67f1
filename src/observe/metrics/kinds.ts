import type { Settings } from '../../config/settings/settings.ts';
import { PlainHistogram, Tally } from './fast-metrics.ts';
import { Gauge, Histogram, type Registry } from './prometheus-client.ts';

/** Makes a metric of the table for one registry. */
type MetricRow<M> = (name: string, registry: Registry, identities: IdentitySections) => M;

/** The settings of everything that verifies credentials. */
export type IdentitySections = readonly Settings['identity'][];

/**
 * A counter that events add to. It is shown from the start, with 0 for each combination of its labels' values.
 *
 * @param labels names of labels, each with the values that are shown from the start
 */
export function counter(
  help: string,
  labels: Readonly<Record<string, readonly string[]>> = {},
): MetricRow<Tally> {
  return counterOf(help, Object.keys(labels), () => combinationsOf(Object.values(labels)));
}

/** A counter that is shown from the start with some combinations of labels, which may depend on the identity settings. */
export function counterOf(
  help: string,
  labelNames: readonly string[],
  known: (identities: IdentitySections) => Iterable<readonly string[]>,
): MetricRow<Tally> {
  return (name, registry, identities) => new Tally(registry, name, help, labelNames, known(identities));
}

/** A gauge that events set. */
export function gauge(help: string, ...labelNames: readonly string[]): MetricRow<Gauge<string>> {
  return (name, registry) =>
    new Gauge<string>({ name, help, labelNames: [...labelNames], registers: [registry] });
}

/** The value of a gauge at a scrape, or one for each value of its label. Undefined: it is missing, if it has no label. */
type GaugeValue = number | undefined | Iterable<readonly [label: string, value: number]>;

/** A gauge that is read at each scrape, once a way to read it is given. It is missing before. */
export function reading(help: string, label = ''): MetricRow<(read: () => GaugeValue) => void> {
  return (name, registry) => {
    let read: (() => GaugeValue) | undefined;
    return (next) => {
      const isShown = read !== undefined;
      read = next;
      if (isShown) return;
      new Gauge<string>({
        name,
        help,
        labelNames: label === '' ? [] : [label],
        registers: [registry],
        collect() {
          showIn(this, label, read?.());
        },
      });
    };
  };
}

function showIn(shown: Gauge<string>, label: string, value: GaugeValue): void {
  shown.reset();
  if (value === undefined) shown.remove();
  else if (typeof value === 'number') shown.set(value);
  else for (const [one, count] of value) shown.set({ [label]: one }, count);
}

/** A histogram without labels, for values that every request has. */
export function histogram(help: string, buckets: readonly number[]): MetricRow<PlainHistogram> {
  return (name, registry) => new PlainHistogram(registry, name, help, buckets);
}

/** A histogram with labels. It is shown from the start with the combinations that the identity settings have. */
export function histogramOf<L extends string>(
  help: string,
  buckets: readonly number[],
  labelNames: readonly L[],
  known: (identities: IdentitySections) => Iterable<Record<L, string>>,
): MetricRow<Histogram<string>> {
  return (name, registry, identities) => {
    const made = new Histogram<string>({
      name,
      help,
      buckets: [...buckets],
      labelNames: [...labelNames],
      registers: [registry],
    });
    for (const labels of known(identities)) made.zero(labels);
    return made;
  };
}

function combinationsOf(values: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return values.reduce<readonly (readonly string[])[]>(
    (all, next) => all.flatMap((one) => next.map((value) => [...one, value])),
    [[]],
  );
}
