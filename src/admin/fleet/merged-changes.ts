import { MOST_CHANGES, type NoticedChange } from '../../observe/log/changes.ts';
import type { Pulse } from './pulse.ts';

/** Replicas notice a changed ConfigMap up to this far apart. */
const SAME_CHANGE_MS = 120_000;

/** A change, as it was first noticed, and by how many replicas it was. */
export interface FleetChange extends NoticedChange {
  readonly replicas: number;
}

/** The changes of all replicas, newest first. What several replicas noticed within two minutes is one change. */
export function mergedChanges(pulses: readonly Pick<Pulse, 'changes'>[]): readonly FleetChange[] {
  const merged: { first: NoticedChange; readonly seenBy: Set<number> }[] = [];
  const all = pulses.flatMap(({ changes }, replica) => changes.map((change) => ({ change, replica })));
  for (const { change, replica } of all.sort((a, b) => a.change.atMs - b.change.atMs)) {
    const known = merged.findLast(
      ({ first, seenBy }) =>
        first.name === change.name &&
        first.text === change.text &&
        change.atMs - first.atMs < SAME_CHANGE_MS &&
        !seenBy.has(replica),
    );
    if (known === undefined) merged.push({ first: change, seenBy: new Set([replica]) });
    else known.seenBy.add(replica);
  }
  return merged
    .reverse()
    .slice(0, MOST_CHANGES)
    .map(({ first, seenBy }) => ({ ...first, replicas: seenBy.size }));
}
