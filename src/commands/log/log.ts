import { type DestinationStream, destination, type Logger, pino } from 'pino';
import { maskUrls } from '../../config/reader/mask.ts';

/** The log on standard output, one JSON object a line; no password of a URL is written. */
export function openLog(level: string, output: DestinationStream = destination(1)): Logger {
  return pino({ level }, { write: (line) => output.write(maskUrls(line)) });
}
