import { setImmediate } from 'node:timers/promises';
import { withinMs } from '../../domain/awaitable.ts';
import type { Ignored } from '../../facts/ignored.ts';
import type { Board } from '../../store/shared-store.ts';

/** How long Redis may take: one that hangs must delay neither an operator nor the next publication. */
const ANSWER_MS = 1_000;

/** The result; undefined where Redis refuses or does not answer in time. */
export async function answered<T>(result: Promise<T> | undefined): Promise<T | undefined> {
  const settled = result?.catch(() => undefined);
  return settled && withinMs(settled, ANSWER_MS, false);
}

/**
 * What the other replicas have put on a board; undefined where Redis does not answer. Texts that cannot be read are left out and counted.
 * Yields to requests between the texts, which are long.
 *
 * @param replica this one
 * @param read returns undefined for a text that it cannot read
 */
export async function readOthers<T>(
  board: Board | undefined,
  replica: string,
  ignored: Pick<Ignored, 'add'>,
  read: (text: string) => T | undefined,
): Promise<ReadonlyMap<string, T> | undefined> {
  const reading = await answered(board?.read());
  if (reading === undefined) return undefined;
  if (reading.leftOut > 0) ignored.add('length', reading.leftOut);
  const others = new Map<string, T>();
  for (const [name, text] of reading.texts) {
    if (name === replica) continue;
    const published = read(text);
    if (published === undefined) ignored.add('form');
    else others.set(name, published);
    await setImmediate();
  }
  return others;
}
