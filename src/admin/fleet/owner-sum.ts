import type { OperationCounts } from '../../observe/usage/activity.ts';
import { addCounts, type Counts, newSum, type Sum } from '../../observe/usage/counts.ts';
import { rankingsOf, type Talker } from '../../observe/usage/extract.ts';
import { WINDOWS, type Window } from '../../observe/usage/windows.ts';
import type { OwnerReport } from './owner-report.ts';
import { newestFirst, type RefusedRequest } from './refusals.ts';

/** What an owner did lately at the replicas that reported. */
export interface OwnerSum {
  /** How many replicas reported. */
  readonly replicas: number;
  /** How many replicas there are; null while Redis cannot be read. */
  readonly ofReplicas: number | null;
  readonly recent: Readonly<Record<Window, Counts>>;
  /** Most points first. */
  readonly operations: readonly OperationCounts[];
  /** The Accounts of an Organization, most points first. */
  readonly accounts: readonly Talker[];
  /** Each ten seconds of the last ten minutes, oldest first. The series of two replicas begin up to ten seconds apart. */
  readonly series: readonly Counts[];
  /** Newest first. */
  readonly refusals: readonly RefusedRequest[];
}

/** Adds up what replicas reported on one owner. */
export function sumOf(reports: readonly OwnerReport[], ofReplicas: number | null): OwnerSum {
  const length = Math.max(...reports.map(({ series }) => series.length));
  return {
    replicas: reports.length,
    ofReplicas,
    recent: Object.fromEntries(
      WINDOWS.map((window) => [window, sum(reports.map(({ windows }) => windows[window]))]),
    ) as Record<Window, Counts>,
    operations: sumOfOperations(reports),
    accounts: rankingsOf(reports.map(({ accounts }) => accounts)).byPoints,
    series: Array.from({ length }, (_, index) =>
      sum(reports.flatMap(({ series }) => series.at(index - length) ?? [])),
    ),
    refusals: newestFirst(reports.flatMap(({ refusals }) => refusals)),
  };
}

function sum(all: readonly Counts[]): Counts {
  const total = newSum();
  for (const counts of all) addCounts(total, counts);
  return total;
}

function sumOfOperations(reports: readonly OwnerReport[]): readonly OperationCounts[] {
  const byName = new Map<string, OperationCounts & Sum>();
  for (const { operation, ...counts } of reports.flatMap(({ operations }) => operations)) {
    const known = byName.get(operation) ?? { operation, ...newSum() };
    addCounts(known, counts);
    byName.set(operation, known);
  }
  return [...byName.values()].sort((a, b) => b.points - a.points || b.requests - a.requests);
}
