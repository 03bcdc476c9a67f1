/**
 * The first module of each program: stack traces name files of `src`. Frames of packages keep their place in the bundle. Reads a source map
 * when a trace first needs it; Node's own support reads all of them at start-up, which takes a tenth of the CPU of `weir check`.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

const maps = new Map<string, SourceMap | undefined>();

Error.prepareStackTrace = (error, frames) => {
  const lines = frames.map((frame) => `    at ${frame}`.replace(/(file:\S+\.js):(\d+):(\d+)/, originalPlace));
  return [Error.prototype.toString.call(error), ...lines].join('\n');
};

/** The place in `src` of a place in a chunk, or the same place if it has none. */
function originalPlace(place: string, chunk: string, line: string, column: string): string {
  const entry = mapOf(chunk)?.findEntry(Number(line) - 1, Number(column) - 1);
  // Where a line has no entry, the map finds the last one before it.
  if (entry === undefined || !('originalSource' in entry) || entry.generatedLine !== Number(line) - 1)
    return place;
  return `${new URL(entry.originalSource, chunk)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

function mapOf(chunk: string): SourceMap | undefined {
  if (!maps.has(chunk)) maps.set(chunk, readMap(chunk));
  return maps.get(chunk);
}

/** Undefined without a map, for example for a file outside of the bundle. */
function readMap(chunk: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${chunk}.map`), 'utf8')));
  } catch {
    return undefined;
  }
}
