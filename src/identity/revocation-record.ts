import type { MessageRecord } from '../store/redis/record.ts';
import { formatTarget, readRevocation, writeRevocation } from './revocation-message.ts';
import { type Revocation, type RevocationReason, Revocations, type Revoked } from './revocations.ts';

/** The revocations that Redis holds, those that are undone included. */
export async function recordedRevocations(record: MessageRecord): Promise<readonly Revocation[]> {
  return combined((await textsOf(record)).map(({ revocation }) => revocation));
}

/** Revokes at every replica. `received`: how many got the message; in a Cluster, only those at one node. */
export async function publishRevocation(
  record: MessageRecord,
  revoked: Revoked,
  forMs: number,
  reason?: RevocationReason,
): Promise<{ readonly revocation: Revocation; readonly received: number }> {
  const atMs = await record.nowMs();
  const untilMs = Math.ceil(atMs + forMs);
  const revocation = { revoked, atMs, untilMs, ...(reason === undefined ? {} : { reason }) };
  return { revocation, received: await record.publish({ text: writeRevocation(revocation), untilMs }) };
}

/**
 * Undoes a revocation at every replica. Undefined if the target is not revoked.
 *
 * @param known what this process knows of the target, in case Redis has lost it
 */
export async function publishUndoing(
  record: MessageRecord,
  revoked: Revoked,
  { known = [], reason }: { readonly known?: readonly Revocation[]; readonly reason?: RevocationReason } = {},
): Promise<Revocation | undefined> {
  const recorded = (await textsOf(record)).filter(({ revocation }) =>
    isSameTarget(revocation.revoked, revoked),
  );
  const [current] = combined([...recorded.map(({ revocation }) => revocation), ...known]);
  if (current === undefined || current.isUndone) return undefined;
  // Later than what it undoes, though both may be of one millisecond.
  const atMs = Math.max(await record.nowMs(), current.atMs + 1);
  const { untilMs } = current;
  const undoing = { revoked, atMs, untilMs, isUndone: true, ...(reason === undefined ? {} : { reason }) };
  const replaced = recorded.map(({ text }) => text);
  await record.publish({ text: writeRevocation(undoing), untilMs }, replaced);
  return undoing;
}

interface RecordedRevocation {
  readonly text: string;
  readonly revocation: Revocation;
}

async function textsOf(record: MessageRecord): Promise<readonly RecordedRevocation[]> {
  const texts = await record.read(await record.nowMs());
  return texts.flatMap((text) => {
    const revocation = readRevocation(text);
    return revocation === undefined ? [] : [{ text, revocation }];
  });
}

function combined(all: readonly Revocation[]): readonly Revocation[] {
  const revocations = new Revocations();
  for (const revocation of all) revocations.add(revocation);
  return revocations.remembered();
}

export function isSameTarget(one: Revoked, other: Revoked): boolean {
  return one.kind === other.kind && formatTarget(one) === formatTarget(other);
}
