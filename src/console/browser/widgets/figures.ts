import { PERIOD_MS, unknownSince } from '../../../admin/freshness.ts';
import { clock } from '../../format.ts';

const LOOK_MS = 250;

/**
 * Panels whose figures are measured again and again. Once their last measurement is older than two periods they turn grey, with the
 * time since which their figures are unknown. For figures that were never measured, it is when the page was opened.
 */
export class Figures {
  readonly #panels: () => Iterable<HTMLElement>;
  readonly #changed: (sinceMs: number | null) => void;
  readonly #periodMs: number;
  readonly #timer: number;
  #measuredAtMs = Date.now();
  #sinceMs: number | null = null;

  /** @param changed called when the figures become unknown, and with null when they are known again */
  constructor(
    panels: () => Iterable<HTMLElement>,
    changed: (sinceMs: number | null) => void = () => {},
    periodMs = PERIOD_MS,
  ) {
    this.#panels = panels;
    this.#changed = changed;
    this.#periodMs = periodMs;
    this.#timer = window.setInterval(() => this.#look(), LOOK_MS);
  }

  /** The figures were measured now, or this long ago. */
  measured(agoMs = 0): void {
    this.#measuredAtMs = Date.now() - agoMs;
    this.#look();
  }

  /** Since when the figures are unknown; null while they are known. */
  get unknownSinceMs(): number | null {
    return this.#sinceMs;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const sinceMs = unknownSince(this.#measuredAtMs, Date.now(), this.#periodMs);
    for (const panel of this.#panels()) {
      if (sinceMs === null) delete panel.dataset.unknown;
      else panel.dataset.unknown = sinceText(sinceMs);
    }
    if (sinceMs === this.#sinceMs) return;
    this.#sinceMs = sinceMs;
    this.#changed(sinceMs);
  }
}

/** `unknown since 14:03:07`. */
export function sinceText(sinceMs: number): string {
  return `unknown since ${clock(sinceMs)}`;
}
