/** The plain truth that counters approximate: every admitted charge with its time. */
export class ExactLog {
  readonly #charges: { readonly atUs: number; readonly points: number }[] = [];

  add(atUs: number, points: number): void {
    this.#charges.push({ atUs, points });
  }

  /** Points charged later than `startUs`, up to and including `endUs`. */
  pointsBetween(startUs: number, endUs: number): number {
    let sum = 0;
    for (const { atUs, points } of this.#charges) if (atUs > startUs && atUs <= endUs) sum += points;
    return sum;
  }

  /** The most points that any window of this length holds. */
  worstWindow(windowUs: number): number {
    return Math.max(0, ...this.#charges.map(({ atUs }) => this.pointsBetween(atUs - windowUs, atUs)));
  }
}
