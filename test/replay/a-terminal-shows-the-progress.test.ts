import { expect, it } from 'vitest';
import type { ReadProgress } from '../../src/replay/input/read-log.ts';
import { ProgressLine } from '../../src/replay/progress.ts';

const HALF_READ: ReadProgress = { file: 'access.log.2.gz', lines: 50_000, bytesRead: 1_000, bytes: 2_000 };

/** What a line of progress writes to a stream in the 10 seconds that half of a log takes. */
function written(
  progress: ReadProgress,
  stream: { readonly isTTY: boolean; readonly columns: number },
): string {
  let text = '';
  const write = (chunk: string) => {
    text += chunk;
    return true;
  };
  const line = new ProgressLine({ ...stream, write } as unknown as NodeJS.WriteStream, 0);
  line.show(progress, 10_000);
  line.show(progress, 10_001);
  return text;
}

it('a terminal shows the file, the share, the speed and the time that is left', () => {
  expect(written(HALF_READ, { isTTY: true, columns: 100 })).toBe(
    '\r\x1b[Kaccess.log.2.gz  [##########----------] 50 %  5,000 lines/s  10 s left',
  );
});

it('for standard input, whose size is unknown, it shows the lines', () => {
  const progress = { ...HALF_READ, file: 'standard input', bytes: undefined };
  expect(written(progress, { isTTY: true, columns: 100 })).toBe(
    '\r\x1b[Kstandard input  50,000 lines  5,000 lines/s',
  );
});

it('a narrow terminal gets no second line, and a file or pipe nothing', () => {
  expect(written(HALF_READ, { isTTY: true, columns: 40 })).toHaveLength('\r\x1b[K'.length + 39);
  expect(written(HALF_READ, { isTTY: false, columns: 0 })).toBe('');
});
