import type { Limits, RowLimits } from '../../domain/limits/limits.ts';
import { furtherRows, isCharged, type LimitRow } from '../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS } from '../../domain/limits/scopes.ts';
import type { Chargeable } from '../../domain/limits/selection.ts';
import type { Priced } from '../../domain/settlement/settlement.ts';
import { type Advice, formatPath, formatPlace, type Origin, type Place, type Problem } from '../problem.ts';

/** The parts of an operation that the cost check reads. */
export interface CostedOperation extends Chargeable, Priced {
  /** Where the cost is set; undefined if it is not set in any file. */
  readonly costWrittenAt?: Place | undefined;
  readonly mostWrittenAt?: Place | undefined;
}

/** Where the limits are written. */
export interface LimitPlaces {
  /** The file with this setting. */
  fileOf(path: readonly string[]): string;
  /** The same with the line, which takes longer. */
  locate(path: readonly string[]): Origin;
}

/** Limits that are all in one source, without lines. */
export function placesIn(source: string): LimitPlaces {
  return { fileOf: () => source, locate: () => ({ source }) };
}

/** Problems with a line: finding it parses the file again, and requests wait meanwhile. */
const MAX_LOCATED = 20;

/**
 * One problem for each limit (of a default, a plan or an override) that is lower than the cost of an operation charged to it. The
 * problem names the most expensive such operation. Expired overrides are checked too. Shadow limits refuse nothing: see `findLowShadows`.
 */
export function checkCosts(
  operations: readonly CostedOperation[],
  limits: Limits,
  places: LimitPlaces,
): readonly Problem[] {
  return lowLimits(operations, limits, false).map(({ path, limit, operation }, index) => {
    const place = index < MAX_LOCATED ? places.locate(path) : { source: places.fileOf(path) };
    return { ...place, path: formatPath(path), ...tooLow(limit, operation) };
  });
}

/** Shadow limits that would refuse every request for an operation. */
export function findLowShadows(operations: readonly CostedOperation[], limits: Limits): readonly LowLimit[] {
  return lowLimits(operations, limits, true);
}

export function lowShadowWarning({ path, limit, operation }: LowLimit, places: LimitPlaces): Problem {
  const message = `the shadow limit ${limit} is below ${mostOf(operation)}: it reports that it would refuse every such request`;
  return { ...places.locate(path), path: formatPath(path), message };
}

/** A limit that is below the cost of the most expensive operation charged to it. */
interface LowLimit {
  /** Where it is written. */
  readonly path: readonly string[];
  readonly limit: number;
  readonly operation: CostedOperation;
}

/** @param isShadow whether shadow limits are meant, or the others */
function lowLimits(
  operations: readonly CostedOperation[],
  limits: Limits,
  isShadow: boolean,
): readonly LowLimit[] {
  const costliest = costliestByRow(operations, limits.rows);
  const low: LowLimit[] = [];
  visitLimits(limits, (given, pathOf) => {
    for (const name in given) {
      const { limit, shadow } = given[name] ?? {};
      const operation = costliest.get(name);
      if (operation === undefined || typeof limit !== 'number' || operation.cost <= limit) continue;
      if (shadow === isShadow) low.push({ path: pathOf(name), limit, operation });
    }
  });
  return low;
}

/**
 * Visits the defaults, and the limits of each plan and of each override. There can be 100,000 overrides, and requests wait
 * meanwhile: a visitor should allocate nothing for valid ones.
 *
 * @param visit gets the limits, and the setting that a limit is written in, by the name of its row
 */
export function visitLimits(
  limits: Limits,
  visit: (given: RowLimits, pathOf: (name: string) => readonly string[]) => void,
): void {
  const further = new Set(furtherRows(limits.rows).map(({ name }) => name));
  visit(limits.defaults, (name) => (further.has(name) ? ['limits', name, 'points'] : ['defaults', name]));
  for (const [plan, given] of limits.plans) visit(given, (name) => ['plans', plan, name]);
  for (const section of OVERRIDE_SECTIONS) {
    for (const [id, overrides] of limits[section]) visit(overrides.limits, (name) => [section, id, name]);
  }
}

function tooLow(limit: number, operation: CostedOperation): Advice {
  const then = reservesMost(operation) ? 'and such a request' : 'which';
  return {
    message: `the limit ${limit} is below ${mostOf(operation)}, ${then} could never be admitted`,
    hint: raiseOrLower(operation.cost, operation),
  };
}

/** Such as `the cost 10 of operation report` or `the 10 points that operation report may reserve`. */
export function mostOf(operation: Priced): string {
  const { id, cost } = operation;
  return reservesMost(operation)
    ? `the ${cost} points that operation ${id} may reserve`
    : `the cost ${cost} of operation ${id}`;
}

export function raiseOrLower(least: number, operation: CostedOperation): string {
  const { costWrittenAt } = operation;
  const raise = `raise the limit to at least ${least}`;
  if (costWrittenAt === undefined) return raise;
  return `${raise}, or lower ${reservesMost(operation) ? '`reserve.most`' : 'the cost'} at ${formatPlace(costWrittenAt)}`;
}

/** Whether its cost is the most that it may reserve, as `atMost` has it. */
function reservesMost({ cost, settlement }: Priced): boolean {
  return settlement?.reserve?.most === cost;
}

/**
 * The most expensive operation that is charged to each row, by the row's name. Its cost is the most that a request can reserve. Rows that
 * count requests have none.
 */
export function costliestByRow(
  operations: readonly CostedOperation[],
  rows: readonly LimitRow[],
): ReadonlyMap<string, CostedOperation> {
  const counting = rows.filter(({ counts }) => counts === 'points');
  const costliest = new Map<string, CostedOperation>();
  for (const operation of operations.map(atMost)) {
    for (const row of counting) {
      if (operation.cost <= (costliest.get(row.name)?.cost ?? 0)) continue;
      if (isCharged(row, operation)) costliest.set(row.name, operation);
    }
  }
  return costliest;
}

/** The names of the rows that count points, and that requests are charged to which may cost more or less than one. */
export function rowsInPoints(
  operations: readonly CostedOperation[],
  rows: readonly LimitRow[],
): ReadonlySet<string> {
  const costly = operations.filter(({ cost, settlement }) => cost > 1 || settlement !== undefined);
  const counting = rows.filter(({ counts }) => counts === 'points');
  return new Set(
    counting.filter((row) => costly.some((operation) => isCharged(row, operation))).map(({ name }) => name),
  );
}

/** The operation as its most expensive request is charged. */
export function atMost(operation: CostedOperation): CostedOperation {
  const { settlement, mostWrittenAt } = operation;
  const most = settlement?.reserve?.most ?? 0;
  return most > operation.cost ? { ...operation, cost: most, costWrittenAt: mostWrittenAt } : operation;
}
