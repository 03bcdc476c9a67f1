/** What replicas do. Each step names the function that it stands for. */
import { type Counts, copy } from './counts.ts';
import type { Step } from './explore.ts';
import { addCharges, addSettlements, addWrites } from './journal-steps.ts';
import type { Add, Part } from './parts.ts';
import { addAttendance, addImpatience, addRecovery } from './recovery-steps.ts';

/** The steps of all replicas that live. */
export function protocolSteps(counts: Counts, without: Part | undefined): Step<Counts>[] {
  const steps: Step<Counts>[] = [];
  const has = (part: Part) => part !== without;
  for (const [index, replica] of counts.replicas.entries()) {
    if (!replica.isAlive) continue;
    const add: Add = (name, change) => {
      const next = copy(counts);
      change(next);
      steps.push({ name: `${index}: ${name}`, next });
    };
    addCharges(counts, index, has, add);
    addSettlements(counts, index, has, add);
    addWrites(counts, index, has, add);
    addAttendance(counts, index, has, add);
    addImpatience(counts, index, has, add);
    if (replica.isConnected) addRecovery(counts, index, has, add);
  }
  return steps;
}
