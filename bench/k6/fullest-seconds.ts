import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';
import { fullestWindow, type Timed } from '../load/fullest-window.ts';
import type { Limits } from '../load/two-buckets.ts';
import type { Sample } from './k6.ts';

/** A sample of this metric is an admitted request. Its value is when it was sent, and its time when it was answered. */
const ADMITTED = 'admitted_from_ms';
/** A request that takes longer to be reported is not compared with later ones. */
const KEPT_MS = 30_000;

/** The fullest second, for an Account and for an Organization, over the limits that the responses name. */
export class FullestSeconds {
  readonly #accounts = new Map<number, Timed[]>();
  readonly #organizations = new Map<number, Timed[]>();

  add({ metric, data: { time, value, tags } }: Sample): void {
    if (metric !== ADMITTED) return;
    const charge = { fromMs: value, toMs: Date.parse(time), points: Number(tags.cost) };
    const account = Number(tags.account);
    const organization = Math.ceil(account / ACCOUNTS_PER_ORGANIZATION);
    keep(this.#accounts, account, { ...charge, limit: Number(tags.accountLimit) });
    keep(this.#organizations, organization, { ...charge, limit: Number(tags.organizationLimit) });
  }

  /** Returns the fullest second since the last call, and drops requests that no later second can contain. */
  take(): Limits {
    return { account: takeWorst(this.#accounts), organization: takeWorst(this.#organizations) };
  }
}

function keep(groups: Map<number, Timed[]>, id: number, charge: Timed): void {
  const group = groups.get(id);
  if (group === undefined) groups.set(id, [charge]);
  else group.push(charge);
}

function takeWorst(groups: Map<number, Timed[]>): number {
  const now = Date.now();
  let worst = 0;
  for (const [id, group] of groups) {
    worst = Math.max(worst, fullestWindow(group));
    const newestMs = group.at(-1)?.fromMs ?? 0;
    const kept = group.filter(({ fromMs }) => fromMs > newestMs - KEPT_MS);
    if (newestMs > now - KEPT_MS) groups.set(id, kept);
    else groups.delete(id);
  }
  return worst;
}
