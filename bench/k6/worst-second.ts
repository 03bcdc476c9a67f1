import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** Points per second. */
export interface Limits {
  readonly account: number;
  readonly organization: number;
}

/** One admitted request: the decision fell between the two times. */
interface Admitted {
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
}

/** A line of `k6 run --out json`, as far as it matters here. */
interface Sample {
  readonly type: string;
  readonly metric: string;
  readonly data: { readonly time: string; readonly value: number; readonly tags: Record<string, string> };
}

const WINDOW_MS = 1_000;
const ACCOUNTS_PER_ORGANIZATION = 10;

/**
 * The most points that one second certainly admitted, divided by the limit, for the worst Account and the worst
 * Organization: of requests that were sent and answered inside it. Above 1 is a broken promise.
 */
export async function worstShares(file: string, limits: Limits): Promise<Limits> {
  const accounts = new Map<string, Admitted[]>();
  const organizations = new Map<string, Admitted[]>();
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (!line.includes('"admitted_from_ms"')) continue;
    const { type, data }: Sample = JSON.parse(line);
    if (type !== 'Point') continue;
    const { account = '', cost } = data.tags;
    const one = { fromMs: data.value, toMs: Date.parse(data.time), points: Number(cost) };
    keep(accounts, account, one);
    keep(organizations, `${Math.ceil(Number(account) / ACCOUNTS_PER_ORGANIZATION)}`, one);
  }
  return {
    account: worst(accounts) / limits.account,
    organization: worst(organizations) / limits.organization,
  };
}

function keep(groups: Map<string, Admitted[]>, name: string, one: Admitted): void {
  const group = groups.get(name);
  if (group === undefined) groups.set(name, [one]);
  else group.push(one);
}

function worst(groups: ReadonlyMap<string, readonly Admitted[]>): number {
  return Math.max(0, ...[...groups.values()].map(worstSecond));
}

function worstSecond(admitted: readonly Admitted[]): number {
  const sorted = [...admitted].sort((one, other) => one.fromMs - other.fromMs);
  let most = 0;
  for (const [index, { fromMs }] of sorted.entries()) {
    let points = 0;
    for (let at = index; at < sorted.length && (sorted[at]?.fromMs ?? 0) < fromMs + WINDOW_MS; at++) {
      const one = sorted[at];
      // Both times are cut to whole milliseconds: the answer may have come almost one later.
      if (one !== undefined && one.toMs < fromMs + WINDOW_MS) points += one.points;
    }
    most = Math.max(most, points);
  }
  return most;
}
