import type { MessageRecord, Published } from '../store/shared-store.ts';
import { timeAfter } from './facts.ts';
import { formatTarget, readRevocation, writeRevocation } from './revocation-message.ts';
import { type Revocation, type RevocationReason, Revocations, type Revoked } from './revocations.ts';

interface Change {
  /** What this process knows of the target, in case Redis has lost it. */
  readonly known?: readonly Revocation[];
  readonly reason?: RevocationReason | undefined;
}

/** The revocations that Redis holds, those that are undone included. */
export async function recordedRevocations(record: MessageRecord): Promise<readonly Revocation[]> {
  const { recorded, nowMs } = await readAll(record);
  return combined(
    recorded.map(({ revocation }) => revocation),
    nowMs,
  );
}

/** Revokes at every replica. A target that is revoked for longer already stays so. */
export async function publishRevocation(
  record: MessageRecord,
  revoked: Revoked,
  forMs: number,
  change: Change = {},
): Promise<Published & { readonly revocation: Revocation }> {
  const { current, replaced, nowMs } = await currentOf(record, revoked, change);
  const atMs = timeAfter(current ? [current] : [], nowMs);
  const untilMs = Math.max(Math.ceil(nowMs + forMs), current?.isRemoved ? 0 : (current?.untilMs ?? 0));
  return publish(record, { revoked, atMs, untilMs, ...reasonOf(change) }, replaced);
}

/** Undoes a revocation at every replica. Undefined if the target is not revoked. */
export async function publishUndoing(
  record: MessageRecord,
  revoked: Revoked,
  change: Change = {},
): Promise<(Published & { readonly revocation: Revocation }) | undefined> {
  const { current, replaced, nowMs } = await currentOf(record, revoked, change);
  if (current === undefined || current.isRemoved) return undefined;
  const { untilMs } = current;
  const undoing = {
    revoked,
    atMs: timeAfter([current], nowMs),
    untilMs,
    isRemoved: true,
    ...reasonOf(change),
  };
  return publish(record, undoing, replaced);
}

async function publish(record: MessageRecord, revocation: Revocation, replaced: readonly string[]) {
  const message = { text: writeRevocation(revocation), untilMs: revocation.untilMs };
  return { ...(await record.publish([message], replaced)), revocation };
}

function reasonOf({ reason }: Change) {
  return reason === undefined ? {} : { reason };
}

/** What is in force for a target, the messages that it comes from, and the time by the clock of Redis. */
async function currentOf(record: MessageRecord, revoked: Revoked, { known = [] }: Change) {
  const { recorded, nowMs } = await readAll(record);
  const same = recorded.filter(({ revocation }) => isSameTarget(revocation.revoked, revoked));
  const [current] = combined([...same.map(({ revocation }) => revocation), ...known], nowMs);
  return { current, replaced: same.map(({ text }) => text), nowMs };
}

async function readAll(record: MessageRecord) {
  const nowMs = await record.nowMs();
  const recorded = (await record.read()).flatMap((text) => {
    const revocation = readRevocation(text, nowMs);
    return revocation === undefined ? [] : [{ text, revocation }];
  });
  return { recorded, nowMs };
}

function combined(all: readonly Revocation[], nowMs: number): readonly Revocation[] {
  const revocations = new Revocations();
  for (const revocation of all) revocations.add(revocation, nowMs);
  return revocations.remembered(nowMs);
}

export function isSameTarget(one: Revoked, other: Revoked): boolean {
  return one.kind === other.kind && formatTarget(one) === formatTarget(other);
}
