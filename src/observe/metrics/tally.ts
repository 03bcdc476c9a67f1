import { Counter, type Registry } from 'prom-client';

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
