import { Counter, type Registry } from 'prom-client';

export interface TallyOptions {
  readonly name: string;
  readonly help: string;
  /** Three at most. Their values must come from this code, never from a request: each combination is kept for good. */
  readonly labelNames: readonly string[];
}

interface Entry {
  readonly labels: Record<string, string>;
  count: number;
}

/**
 * A counter that adds up plain numbers, and tells prom-client when a scrape asks: for what is counted at every
 * request, where prom-client's own would build and hash an object each time.
 */
export class Tally {
  readonly #labelNames: readonly string[];
  readonly #entries: Entry[] = [];
  /** Entries by the values of their labels, one map inside the other. */
  readonly #byValue = new Map<string, Map<string, Map<string, Entry>>>();

  constructor(registry: Registry, { name, help, labelNames }: TallyOptions) {
    this.#labelNames = labelNames;
    const entries = this.#entries;
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect() {
        for (const entry of entries) {
          this.inc(entry.labels, entry.count);
          entry.count = 0;
        }
      },
    });
  }

  /** The values are the labels', in the order of their names. */
  add(count: number, first = '', second = '', third = ''): void {
    const entry = this.#byValue.get(first)?.get(second)?.get(third) ?? this.#open(first, second, third);
    entry.count += count;
  }

  #open(first: string, second: string, third: string): Entry {
    const values = [first, second, third];
    const labels = Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? '']));
    const entry = { labels, count: 0 };
    const seconds = this.#byValue.get(first) ?? new Map<string, Map<string, Entry>>();
    const thirds = seconds.get(second) ?? new Map<string, Entry>();
    this.#byValue.set(first, seconds.set(second, thirds.set(third, entry)));
    this.#entries.push(entry);
    return entry;
  }
}
