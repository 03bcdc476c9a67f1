import { roundedDuration } from '../domain/duration.ts';
import { shownCount } from '../domain/shown.ts';
import type { ReadProgress } from './input/read-log.ts';

/** Time between updates. */
const EVERY_MS = 200;

/** A progress line that is rewritten while a log is read. Only for terminals. */
export class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  readonly #startMs: number;
  #shownMs = Number.NEGATIVE_INFINITY;

  constructor(stream: NodeJS.WriteStream, nowMs: number = performance.now()) {
    this.#stream = stream;
    this.#startMs = nowMs;
  }

  show(progress: ReadProgress, nowMs: number = performance.now()): void {
    if (!this.#stream.isTTY || nowMs < this.#shownMs + EVERY_MS) return;
    this.#shownMs = nowMs;
    const text = progressText(progress, (nowMs - this.#startMs) / 1000);
    this.#stream.write(`\r\x1b[K${text.slice(0, Math.max(20, this.#stream.columns - 1))}`);
  }

  clear(): void {
    if (this.#stream.isTTY && this.#shownMs > 0) this.#stream.write('\r\x1b[K');
  }
}

/** Such as `access.log.2.gz  [########------------] 41 %  182,400 lines/s  23 s left`. */
function progressText({ file, lines, bytes, bytesRead }: ReadProgress, seconds: number): string {
  const speed = `${shownCount(seconds > 0 ? lines / seconds : 0)} lines/s`;
  if (bytes === undefined || bytes === 0) return `${file}  ${shownCount(lines)} lines  ${speed}`;
  const done = Math.min(1, bytesRead / bytes);
  const filled = Math.round(done * BAR_WIDTH);
  const bar = `${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}`;
  const left = done > 0 ? `  ${roundedDuration(Math.round((seconds / done) * (1 - done)))} left` : '';
  return `${file}  [${bar}] ${Math.floor(done * 100)} %  ${speed}${left}`;
}

const BAR_WIDTH = 20;
