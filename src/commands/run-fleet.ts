import { randomUUID } from 'node:crypto';
import { type PulseSources, Recorder } from '../admin/fleet/recorder.ts';
import { Fleet } from '../admin/top/fleet.ts';
import type { Talkers } from '../admin/top/talkers.ts';
import type { Settings } from '../config/settings/settings.ts';
import { openBoard } from '../store/redis/board.ts';

interface RunningFleet {
  readonly fleet: Fleet;
  close(): Promise<void>;
}

/** Records what this replica does and, with a shared store, publishes it to the others. */
export function runFleet(
  store: Settings['store'],
  talkers: Talkers,
  sources: Omit<PulseSources, 'storeKind'>,
): RunningFleet {
  const replica = randomUUID();
  const board = store.kind === 'memory' ? undefined : openBoard(store, 'top', replica);
  const recorder = new Recorder({ ...sources, storeKind: store.kind });
  const fleet = new Fleet(replica, { talkers, pulse: () => recorder.pulse() }, board);
  recorder.start();
  return {
    fleet,
    close() {
      recorder.stop();
      return fleet.close();
    },
  };
}
