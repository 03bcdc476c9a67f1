/** Values of equal spans of time, one list for each column. */
export interface Bins<Column extends string> {
  /** Unix time of the first bin's start. */
  readonly startUs: number;
  readonly binUs: number;
  readonly columns: Readonly<Record<Column, readonly number[]>>;
}

/** Values over time. When the bins are full, neighbours are combined and each bin spans twice the time. */
export class Series<Column extends string> {
  readonly #combine: Readonly<Record<Column, 'sum' | 'max'>>;
  readonly #columns: Record<Column, number[]>;
  readonly #names: readonly Column[];
  readonly #most: number;
  #binUs: number;
  #startUs = 0;
  #count = 0;

  /** @param most maximum number of bins */
  constructor(columns: Readonly<Record<Column, 'sum' | 'max'>>, firstBinUs: number, most: number) {
    this.#combine = columns;
    this.#names = Object.keys(columns) as Column[];
    this.#columns = Object.fromEntries(this.#names.map((name) => [name, [] as number[]])) as Record<
      Column,
      number[]
    >;
    this.#binUs = firstBinUs;
    this.#most = most;
  }

  /** Times must not decrease. */
  record(column: Column, value: number, atUs: number): void {
    const bin = this.#binAt(atUs);
    const values = this.#columns[column];
    values[bin] = combined(this.#combine[column], values[bin] ?? 0, value);
  }

  bins(): Bins<Column> {
    return { startUs: this.#startUs, binUs: this.#binUs, columns: this.#columns };
  }

  #binAt(atUs: number): number {
    if (this.#count === 0) this.#startUs = Math.floor(atUs / this.#binUs) * this.#binUs;
    let bin = Math.floor((atUs - this.#startUs) / this.#binUs);
    while (bin >= this.#most) {
      this.#halve();
      bin = Math.floor((atUs - this.#startUs) / this.#binUs);
    }
    for (; this.#count <= bin; this.#count++) {
      for (const name of this.#names) this.#columns[name].push(0);
    }
    return bin;
  }

  #halve(): void {
    const binUs = this.#binUs * 2;
    const startUs = Math.floor(this.#startUs / binUs) * binUs;
    const shift = (this.#startUs - startUs) / this.#binUs;
    const count = Math.ceil((this.#count + shift) / 2);
    for (const name of this.#names) {
      const halved = new Array<number>(count).fill(0);
      this.#columns[name].forEach((value, index) => {
        const bin = Math.floor((index + shift) / 2);
        halved[bin] = combined(this.#combine[name], halved[bin] ?? 0, value);
      });
      this.#columns[name] = halved;
    }
    this.#count = count;
    this.#binUs = binUs;
    this.#startUs = startUs;
  }
}

/** Combines two values of one bin. */
function combined(combine: 'sum' | 'max', one: number, other: number): number {
  return combine === 'sum' ? one + other : Math.max(one, other);
}
