/** The model of the journal, and what must hold in each of its states. */
import { type Counts, type Faults, initialCounts, NO_FAULTS, pointsOf } from './counts.ts';
import type { Model, Step } from './explore.ts';
import { faultSteps } from './faults.ts';
import { keyOf, stateOf } from './keys.ts';
import { isCounting, type Part } from './parts.ts';
import { protocolSteps } from './protocol.ts';

export interface Setup {
  readonly replicas: number;
  readonly limit?: number;
  readonly settles?: 1 | -1;
  /** False if no owner asks, so that all are put back in turn. */
  readonly asks?: boolean;
  readonly faults: Partial<Faults>;
  /** A part that is left out. */
  readonly without?: Part | undefined;
}

export function journalModel({
  replicas,
  limit = 1,
  settles,
  asks = true,
  faults,
  without,
}: Setup): Model<Counts> {
  const initial = { ...initialCounts(replicas, limit, settles ?? 1, { ...NO_FAULTS, ...faults }), asks };
  return {
    initial,
    stepsOf: (counts) => [...protocolSteps(counts, without), ...faultSteps(counts, without)],
    keyOf,
    stateOf: (key) => stateOf(key, initial),
    // Two servers that count at a time may each admit up to the limit, as without a journal.
    problemOf: (counts, steps) =>
      problemOf(
        counts,
        steps,
        (faults.failovers ?? 0) + (faults.slow ?? 0) + (faults.starts ?? 0) === 0,
        settles !== -1 ? 0 : (faults.settlements ?? 0) - counts.left.settlements,
        faults.impatience ? lossesIn(faults) - lossesIn(counts.left) : 0,
      ),
  };
}

const lossesIn = ({ empties = 0, snapshots = 0 }: Partial<Faults>) => empties + snapshots;

/**
 * @param givenBack points that settlements have given back, or will
 * @param refills how often Redis may have been filled by replicas that went on without the journal
 */
function problemOf(
  counts: Counts,
  steps: readonly Step<Counts>[],
  isOneServer: boolean,
  givenBack: number,
  refills: number,
): string | undefined {
  const { admitted, added, died, unknown, rows, period, servers, primary } = counts;
  for (const at of [0, 1] as const) {
    if (isOneServer && admitted[at] > (counts.limit + givenBack) * (1 + refills) + died[at])
      return 'more points were admitted than the limit';
    if (rows[at] > admitted[at] + Math.max(0, added[at]))
      return 'the journal has more points than were admitted';
  }
  const server = servers[primary];
  const isRight = server.mark === server.id;
  const isCounted = isCounting(server, () => true);
  const counted = pointsOf(server, period);
  const atWay = counts.replicas.filter(({ unanswered }) => unanswered === period).length;
  const settling = counts.replicas.filter((one) => one.settling !== 'none').length;
  const [adding, givingBack] = counts.settles > 0 ? [settling, 0] : [0, settling];
  const known = admitted[period] + added[period];
  if (isCounted && counted > known + unknown[period] + atWay + adding)
    return 'Redis has more points than were charged';
  if (isCounted && isOneServer && counted < known - died[period] - givingBack) return 'points are forgotten';
  if (!isQuiet(counts, steps)) return undefined;
  if (!isRight) return 'counts are never put back';
  if (counted < known - died[period]) return 'points are forgotten for good';
  return undefined;
}

/** Whether nothing is left to do but to charge, while nothing more goes wrong. */
function isQuiet({ replicas }: Counts, steps: readonly Step<Counts>[]): boolean {
  if (!replicas.some(({ isAlive }) => isAlive)) return false;
  return steps.every(({ name }) => WORLD.some((one) => name.endsWith(one)));
}

/** Steps that nobody has to take. */
const WORLD = [
  ': charge',
  ': settle',
  ': die',
  'start anew',
  'a replica starts',
  'is emptied',
  'is empty',
  'earlier data',
  'becomes the primary',
  'the period ends',
  'gets a copy',
  'goes on without it',
];
