import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  type AssignedPlan,
  type GivenLimit,
  type Limits,
  type Overrides,
  type RowLimits,
  rowNamed,
} from '../../../domain/limits/limits.ts';
import { countedBy, type LimitRow } from '../../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS } from '../../../domain/limits/scopes.ts';

/** Changes that are listed one by one. */
const MOST_LISTED = 20;

/** Overrides compared before yielding to the event loop: about a millisecond of work. */
const SLICE = 2_000;

/** One change. Without an id it is the default of all owners, or the limit of a plan. */
interface LimitChange {
  readonly change: 'added' | 'removed' | 'changed';
  /** Account, Person, address, Organization or principal; missing for the limit of a plan. */
  readonly scope?: string;
  /** The owner. */
  readonly id?: string;
  /** The plan whose limit it is. */
  readonly plan?: string;
  /** Missing where another plan was assigned. */
  readonly bucket?: string;
  readonly from?: object;
  readonly to?: object;
}

/** What a change is of. */
type Subject = Pick<LimitChange, 'scope' | 'id' | 'plan'>;

/**
 * What changed from one version of the limits to the next, in bounded length. Yields to the event loop, because there may be 100,000
 * overrides.
 */
export async function differenceOf(before: Limits, after: Limits) {
  const noted = new Noted(before, after);
  noted.compareRows();
  noted.compareLimits(before.defaults, after.defaults, {});
  for (const plan of new Set([...after.plans.keys(), ...before.plans.keys()])) {
    noted.compareLimits(before.plans.get(plan), after.plans.get(plan), { plan });
  }
  for (const section of OVERRIDE_SECTIONS) {
    let compared = 0;
    for (const id of idsOf(before[section], after[section])) {
      noted.compareOverrides(before[section].get(id), after[section].get(id), { id });
      if (++compared % SLICE === 0) await setImmediate();
    }
  }
  const { counts, difference } = noted;
  const omitted = counts.added + counts.removed + counts.changed - difference.length;
  const [from, to] = [before.windowSeconds, after.windowSeconds];
  return {
    ...counts,
    ...(from !== to && { windowSeconds: { from, to } }),
    /** The first changes: defaults, then plans, Accounts, Organizations, addresses and principals. */
    difference,
    /** How many more there are. */
    ...(omitted > 0 && { omitted }),
  };
}

function* idsOf(earlier: ReadonlyMap<string, Overrides>, later: ReadonlyMap<string, Overrides>) {
  yield* later.keys();
  for (const id of earlier.keys()) if (!later.has(id)) yield id;
}

class Noted {
  readonly counts = { added: 0, removed: 0, changed: 0 };
  readonly difference: LimitChange[] = [];
  readonly #before: Limits;
  readonly #after: Limits;
  readonly #names: readonly string[];

  constructor(before: Limits, after: Limits) {
    this.#before = before;
    this.#after = after;
    this.#names = [...new Set([...after.rows, ...before.rows].map(({ name }) => name))];
  }

  /** What a further limit counts, and in which window; not the windows of the contract, which have one setting. */
  compareRows(): void {
    for (const row of this.#after.rows) {
      const earlier = rowNamed(this.#before, row.name);
      if (row.isContract || earlier === undefined) continue;
      const [from, to] = [counted(earlier), counted(row)];
      if (isDeepStrictEqual(from, to)) continue;
      const { name: bucket, scope } = row;
      this.#note({ change: 'changed', scope, bucket, from, to });
    }
  }

  compareOverrides(from: Overrides | undefined, to: Overrides | undefined, subject: Subject): void {
    if (from === to) return;
    this.compareLimits(from?.limits, to?.limits, subject);
    this.#compareStarts(from?.periodStartsOn, to?.periodStartsOn, subject);
    if (from?.plan?.name === to?.plan?.name && from?.plan?.untilMs === to?.plan?.untilMs) return;
    this.#note({
      change: changeOf(from?.plan, to?.plan),
      ...subject,
      ...(from?.plan && { from: shownPlan(from.plan) }),
      ...(to?.plan && { to: shownPlan(to.plan) }),
    });
  }

  #compareStarts(from: number | undefined, to: number | undefined, subject: Subject): void {
    if (from === to) return;
    this.#note({
      change: changeOf(from, to),
      ...subject,
      ...(from !== undefined && { from: { periodStartsOn: from } }),
      ...(to !== undefined && { to: { periodStartsOn: to } }),
    });
  }

  compareLimits(from: RowLimits | undefined, to: RowLimits | undefined, subject: Subject): void {
    if (from === to) return;
    for (const bucket of this.#names) this.#compare(bucket, from?.[bucket], to?.[bucket], subject);
  }

  #compare(bucket: string, from: GivenLimit | undefined, to: GivenLimit | undefined, subject: Subject): void {
    if (from?.limit === to?.limit && from?.shadow === to?.shadow && from?.untilMs === to?.untilMs) return;
    const row = rowNamed(this.#after, bucket) ?? rowNamed(this.#before, bucket);
    this.#note({
      change: changeOf(from, to),
      ...(subject.plan === undefined && row && { scope: row.scope }),
      ...subject,
      bucket,
      ...(from && { from: shown(from) }),
      ...(to && { to: shown(to) }),
    });
  }

  #note(change: LimitChange): void {
    this.counts[change.change]++;
    if (this.difference.length < MOST_LISTED) this.difference.push(change);
  }
}

function changeOf(from: object | number | undefined, to: object | number | undefined): LimitChange['change'] {
  return from === undefined ? 'added' : to === undefined ? 'removed' : 'changed';
}

function counted(row: LimitRow) {
  const { scope: per, ...others } = countedBy(row);
  return { per, ...others, ...(row.durable === false && { durable: false }) };
}

function shown({ limit, shadow, untilMs }: GivenLimit) {
  return { limit, ...(shadow && { shadow }), ...untilText(untilMs) };
}

function shownPlan({ name, untilMs }: AssignedPlan) {
  return { plan: name, ...untilText(untilMs) };
}

function untilText(untilMs: number | undefined) {
  return untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() };
}
