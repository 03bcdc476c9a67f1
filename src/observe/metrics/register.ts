import { Counter, Gauge, type Registry } from 'prom-client';

/** Names of labels, each with the values that are shown from the start. */
type Labels = Readonly<Record<string, readonly string[]>>;

/** A counter that is shown from the start, with 0 for each combination of its labels' values. */
export function counter(registry: Registry, name: string, help: string, labels: Labels = {}): Counter {
  const made = new Counter({ name, help, labelNames: Object.keys(labels), registers: [registry] });
  for (const one of combinationsOf(labels)) made.inc(one, 0);
  return made;
}

/** A gauge whose values others set. */
export function gauge(registry: Registry, name: string, help: string, ...labelNames: string[]): Gauge {
  return new Gauge({ name, help, labelNames, registers: [registry] });
}

/** A gauge that is read at each scrape. It is missing while `read` returns undefined. */
export function readGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | undefined,
): void {
  new Gauge({
    ...{ name, help, registers: [registry] },
    collect() {
      const value = read();
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
}

function combinationsOf(labels: Labels): readonly Record<string, string>[] {
  return Object.entries(labels).reduce<readonly Record<string, string>[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
}
