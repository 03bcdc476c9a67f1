import { setTimeout } from 'node:timers/promises';

/** Rendering takes at most one part in this many of the process's time. */
const SHARE = 10;

/**
 * The text of all metrics, for any number of readers. All that wait share one rendering, which begins after they asked, so that nobody
 * gets an old one. The next one begins after a pause of nine times as long as this one took.
 */
export class Exposition {
  readonly #render: () => Promise<string>;
  #next: Promise<string> | undefined;
  #pauseEnds: Promise<unknown> = Promise.resolve();

  constructor(render: () => Promise<string>) {
    this.#render = render;
  }

  text(): Promise<string> {
    this.#next ??= this.#renderNext();
    return this.#next;
  }

  async #renderNext(): Promise<string> {
    await this.#pauseEnds;
    this.#next = undefined;
    const startedMs = performance.now();
    const rendering = this.#render();
    this.#pauseEnds = rendering.then(
      () => pause((SHARE - 1) * (performance.now() - startedMs)),
      () => undefined,
    );
    return rendering;
  }
}

/** Does not keep the process running. */
function pause(ms: number): Promise<unknown> {
  return setTimeout(ms, undefined, { ref: false });
}
