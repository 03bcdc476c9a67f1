import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';

/** Points per second. */
export interface Limits {
  readonly account: number;
  readonly organization: number;
}

/** One admitted request: the decision fell between the two times, by these limits. */
export interface Admitted {
  readonly account: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
  readonly limits: Limits;
}

interface Charge extends Omit<Admitted, 'account' | 'limits'> {
  readonly limit: number;
}

const WINDOW_MS = 1_000;
/** Requests that take longer to be reported than this are not compared with later ones. */
const KEPT_MS = 30_000;

/**
 * The fullest second so far, for an Account and for an Organization: points of requests that were sent and answered inside it, over
 * the highest limit that decided one of them. Above 1 is a broken promise.
 */
export class FullestWindows {
  readonly #accounts = new Map<number, Charge[]>();
  readonly #organizations = new Map<number, Charge[]>();

  add({ account, limits, ...charge }: Admitted): void {
    keep(this.#accounts, account, { ...charge, limit: limits.account });
    const organization = Math.ceil(account / ACCOUNTS_PER_ORGANIZATION);
    keep(this.#organizations, organization, { ...charge, limit: limits.organization });
  }

  /** Returns the fullest second among the requests since the last call, and drops those that no later second can contain. */
  take(): Limits {
    return { account: takeWorst(this.#accounts), organization: takeWorst(this.#organizations) };
  }
}

function keep(groups: Map<number, Charge[]>, id: number, charge: Charge): void {
  const group = groups.get(id);
  if (group === undefined) groups.set(id, [charge]);
  else group.push(charge);
}

function takeWorst(groups: Map<number, Charge[]>): number {
  let worst = 0;
  for (const [id, group] of groups) {
    const sorted = group.sort((one, other) => one.fromMs - other.fromMs);
    worst = Math.max(worst, worstShare(sorted));
    const newestMs = sorted.at(-1)?.fromMs ?? 0;
    groups.set(
      id,
      sorted.filter(({ fromMs }) => fromMs > newestMs - KEPT_MS),
    );
  }
  return worst;
}

function worstShare(sorted: readonly Charge[]): number {
  let worst = 0;
  for (const [index, { fromMs }] of sorted.entries()) {
    const endMs = fromMs + WINDOW_MS;
    let [points, limit] = [0, 0];
    for (let at = index; at < sorted.length; at++) {
      const charge = sorted[at];
      if (charge === undefined || charge.fromMs >= endMs) break;
      // Both times are cut to whole milliseconds: the answer may have come almost one later.
      if (charge.toMs >= endMs) continue;
      points += charge.points;
      limit = Math.max(limit, charge.limit);
    }
    if (limit > 0) worst = Math.max(worst, points / limit);
  }
  return worst;
}
