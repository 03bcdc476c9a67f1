import { setTimeout } from 'node:timers/promises';
import type { Settings } from '../config/settings/settings.ts';
import type { Log } from '../observe/log/log.ts';

/**
 * How a running gateway ends.
 *
 * @param groups are closed in this order. The parts of a group are closed at the same time, because none needs another: each may wait for
 * seconds for a server that does not answer, and the process may be killed before the last has ended.
 */
export function endingOf(
  state: { isReady: boolean },
  groups: readonly (readonly { close(): unknown }[])[],
  { shutdown }: Pick<Settings, 'shutdown'>,
  log: Log['log'],
) {
  const close = async (): Promise<void> => {
    state.isReady = false;
    for (const parts of groups) await Promise.all(parts.map((part) => part.close()));
  };
  const drain = async (): Promise<void> => {
    state.isReady = false;
    log.info('weir is draining');
    await setTimeout(shutdown.drainDelaySeconds * 1000);
    await close();
  };
  return { close, drain };
}
