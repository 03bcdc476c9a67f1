import type { LimitRow } from './rows.ts';
import { type OverrideSection, scopeNamed } from './scopes.ts';

/** A limit from a file: of all owners, of those with a plan, or of one owner. */
export interface GivenLimit {
  /** Points or requests per window; `none` where no such limit applies. */
  readonly limit: number | 'none';
  /** A shadow limit is counted and reported beside the enforced one, and refuses nothing. */
  readonly shadow: boolean;
  /** Unix time at which this override expires; undefined for never. */
  readonly untilMs?: number;
}

/** Limits by the name of their row. */
export type RowLimits = Readonly<Record<string, GivenLimit>>;

/** A plan that a file assigns, or that a token or the directory names. */
export interface AssignedPlan {
  readonly name: string;
  /** Unix time at which the assignment expires; undefined for never. */
  readonly untilMs?: number;
}

/** What a file says of one owner. */
export interface Overrides {
  readonly plan?: AssignedPlan;
  readonly limits: RowLimits;
  /** The day on which its months begin. It does not expire. */
  readonly periodStartsOn?: number;
}

/** The overrides of single owners, by id. */
export type OverrideMaps = Readonly<Record<OverrideSection, ReadonlyMap<string, Overrides>>>;

/** All limits. Use `limitInForce` rather than reading an override directly, because it may have expired. */
export interface Limits extends OverrideMaps {
  /** Of the contract's buckets. */
  readonly windowSeconds: number;
  /** The contract's buckets, then the further limits of the file in its order. */
  readonly rows: readonly LimitRow[];
  /** The limit of each row for owners without another one. */
  readonly defaults: RowLimits;
  /** The contract's buckets that the file leaves out: their defaults are Weir's. */
  readonly unwritten: readonly string[];
  /** By name. */
  readonly plans: ReadonlyMap<string, RowLimits>;
}

/** Where a limit is set: in a file for all owners, in a plan, in a file for this one, or while the gateways run. */
export type LimitSource = 'default' | 'plan' | 'override' | 'live';

/** The limits of one bucket of one owner. */
export interface LimitInForce {
  /** Points or requests per window, above which requests are refused; undefined where no such limit applies. */
  readonly limit: number | undefined;
  readonly limitSource: LimitSource;
  /** The shadow limit beside it, if any. */
  readonly shadowLimit: number | undefined;
  readonly shadowSource: LimitSource;
  /** Unix time until which this is valid unless the limits change; infinite if nothing expires. */
  readonly untilMs: number;
}

/** The time of what does not expire. */
export const NEVER = Number.POSITIVE_INFINITY;

/** The plan that a file assigns to an owner; undefined without one, or once it has expired. */
export function assignedPlan(
  limits: OverrideMaps,
  section: OverrideSection,
  id: string | undefined,
  nowMs: number,
): AssignedPlan | undefined {
  const plan = id === undefined ? undefined : limits[section].get(id)?.plan;
  return plan === undefined || (plan.untilMs ?? NEVER) <= nowMs ? undefined : plan;
}

/**
 * The limit of a row for the owner with this id. An override wins over the plan, and a plan over the default. A shadow limit
 * leaves the next of them in force; a shadow default leaves nothing in force.
 */
export function limitInForce(
  limits: Limits,
  row: LimitRow,
  id: string,
  plan: AssignedPlan | undefined,
  nowMs: number,
): LimitInForce {
  const layers = layersOf(limits, row, id, plan).filter(({ untilMs }) => untilMs > nowMs);
  const last = layers.findIndex(({ shadow }) => !shadow);
  const consulted = last === -1 ? layers : layers.slice(0, last + 1);
  const shadow = consulted.find((layer) => layer.shadow);
  const enforced = last === -1 ? undefined : layers[last];
  return {
    limit: enforced?.limit,
    limitSource: enforced?.source ?? 'default',
    shadowLimit: shadow?.limit,
    shadowSource: shadow?.source ?? enforced?.source ?? 'default',
    untilMs: Math.min(plan?.untilMs ?? NEVER, ...consulted.map(({ untilMs }) => untilMs)),
  };
}

/** What the files say of a limit, the most specific first. */
function layersOf(limits: Limits, { name, scope }: LimitRow, id: string, plan: AssignedPlan | undefined) {
  const section = scopeNamed(scope).overrides;
  return [
    ...layer('override', limits[section].get(id)?.limits[name]),
    ...layer('plan', plan && limits.plans.get(plan.name)?.[name]),
    ...layer('default', limits.defaults[name]),
  ];
}

function layer(source: LimitSource, given: GivenLimit | undefined) {
  if (given === undefined) return [];
  const limit = given.limit === 'none' ? undefined : given.limit;
  return [{ source, limit, shadow: given.shadow, untilMs: given.untilMs ?? NEVER }];
}

/**
 * The day on which the months of an owner begin: as the files say, or else as its token or the directory says. Undefined where that is
 * left to the limit.
 *
 * @param account whose day a principal has
 */
export function startOfMonths(
  limits: OverrideMaps,
  section: OverrideSection,
  id: string,
  { organization, account, periodStartsOn }: OwnerTerms,
): number | undefined {
  const own = limits[section].get(id)?.periodStartsOn;
  if (own !== undefined || section === 'organizations') return own ?? periodStartsOn;
  return startIn(limits.accounts, account) ?? startIn(limits.organizations, organization) ?? periodStartsOn;
}

/** An owner of limits: what decides its plan, and on which day its months begin. */
export interface OwnerTerms {
  /** The plan that the token or the directory names. Of an Organization: the plan of an Account that is charged. */
  readonly plan?: string | undefined;
  /** The Organization of an Account, or the one that a principal is counted in. */
  readonly organization?: string | undefined;
  /** The Account of a principal. */
  readonly account?: string | undefined;
  /** By the token or the directory; of a principal, by its token. */
  readonly periodStartsOn?: number | undefined;
}

function startIn(overrides: ReadonlyMap<string, Overrides>, id: string | undefined): number | undefined {
  return id === undefined ? undefined : overrides.get(id)?.periodStartsOn;
}

/** The row with this name; undefined if the limits have none. */
export function rowNamed({ rows }: Pick<Limits, 'rows'>, name: string): LimitRow | undefined {
  return rows.find((row) => row.name === name);
}
