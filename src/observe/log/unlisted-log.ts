import type { Logger } from 'pino';

/** Shapes remembered; beyond that, new shapes are only counted by the metric. */
const MAX_SHAPES = 1_000;

/** Logs one line for each new shape of an unlisted path, so that a missing cost is noticed. */
export function createUnlistedLog(log: Logger): (method: string, path: string) => void {
  const seen = new Set<string>();
  return (method, path) => {
    const shape = `${method} ${shapeOf(path)}`;
    if (seen.has(shape) || seen.size >= MAX_SHAPES) return;
    seen.add(shape);
    log.warn({ shape }, 'unlisted operation: it has no price of its own');
    if (seen.size === MAX_SHAPES) log.warn('further shapes of unlisted operations are counted, not logged');
  };
}

/** `/v3/things/th_81f2/open` -> `/v3/things/{}/open`: a segment with a digit is treated as an id. */
function shapeOf(path: string): string {
  return path
    .split('/')
    .slice(0, 12)
    .map((segment) => (/^v\d+$/.test(segment) || !/\d/.test(segment) ? segment.slice(0, 40) : '{}'))
    .join('/');
}
