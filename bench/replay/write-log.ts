import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type GeneratedLog, linesOf } from './generated-log.ts';

/** Characters that are written at once. */
const PIECE = 1_000_000;

/** Writes a generated log; compressed if the file's name ends with .gz. */
export async function writeLog(file: string, log: GeneratedLog): Promise<void> {
  const disk = createWriteStream(file);
  const written = once(disk, 'finish');
  const stream = file.endsWith('.gz') ? compressedInto(disk) : disk;
  let text = '';
  for (const line of linesOf(log)) {
    text += line;
    if (text.length < PIECE) continue;
    if (!stream.write(text)) await once(stream, 'drain');
    text = '';
  }
  stream.end(text);
  await written;
}

function compressedInto(disk: WriteStream): Writable {
  const gzip = createGzip({ level: 9 });
  gzip.pipe(disk);
  return gzip;
}
