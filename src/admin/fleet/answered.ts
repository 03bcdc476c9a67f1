import { setTimeout } from 'node:timers/promises';

/** How long Redis may take: one that hangs must delay neither an operator nor the next publication. */
const ANSWER_MS = 1_000;

/** The result; undefined where Redis refuses or does not answer in time. */
export async function answered<T>(result: Promise<T> | undefined): Promise<T | undefined> {
  const ended = new AbortController();
  const late = setTimeout(ANSWER_MS, undefined, { ref: false, signal: ended.signal }).catch(() => undefined);
  try {
    return await Promise.race([result?.catch(() => undefined), late]);
  } finally {
    ended.abort();
  }
}
