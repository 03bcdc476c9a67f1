import { KINDS_BY_METHOD } from '../../openapi/listed-operation.ts';
import type { Entry, Price, PriceOf, ReadLine, Skipped, Unreadable } from './entry.ts';

/** The highest possible limit and count. */
const MAX_POINTS = 1_000_000_000;

/** The members of a line of Weir's access log that a replay uses: docs/access-log.md. */
interface WeirLine {
  readonly msg?: unknown;
  /** What Docker's `json-file` driver wraps around a line. */
  readonly log?: unknown;
  readonly time?: unknown;
  readonly chargedAtUs?: unknown;
  readonly totalMs?: unknown;
  readonly method?: unknown;
  readonly path?: unknown;
  readonly account?: unknown;
  readonly organization?: unknown;
  readonly organizationLimit?: unknown;
  readonly principal?: unknown;
  readonly kind?: unknown;
  readonly cost?: unknown;
  readonly personOnly?: unknown;
  readonly public?: unknown;
  readonly address?: unknown;
  readonly outcome?: unknown;
  readonly bucket?: unknown;
}

/**
 * Reads Weir's own access log, including lines with a prefix or wrapper of Docker, containerd or `kubectl logs
 * --prefix`.
 *
 * @param priceOf replaces the logged price, where given
 */
export function weirLog(priceOf?: PriceOf): ReadLine {
  return (line) => {
    const record = parsed(line);
    if (record === undefined) return { problem: 'is not a JSON object' };
    return record.msg === 'request' ? readRequest(record, priceOf) : 'other';
  };
}

function readRequest(record: WeirLine, priceOf: PriceOf | undefined): Entry | Skipped | Unreadable {
  const { outcome } = record;
  if (outcome === 'refused' || outcome === 'free') return 'uncharged';
  if (outcome !== 'admitted' && outcome !== 'denied' && outcome !== 'uncounted') {
    return { problem: 'has no "outcome" of a request' };
  }
  const price = priceOf === undefined ? loggedPrice(record) : newPrice(record, priceOf);
  return 'kind' in price ? entryOf(record, price) : (price.skipped ?? price);
}

function parsed(line: string): WeirLine | undefined {
  const start = line.startsWith('{') ? 0 : line.indexOf('{');
  if (start === -1) return undefined;
  try {
    const record = JSON.parse(start === 0 ? line : line.slice(start)) as WeirLine;
    return typeof record.log === 'string' ? parsed(record.log) : record;
  } catch {
    return undefined;
  }
}

type PriceReading = Price | (Unreadable & { readonly skipped?: Skipped });

function loggedPrice({ cost, kind, method, personOnly, public: isPublic }: WeirLine): PriceReading {
  if (typeof cost !== 'number' || !Number.isInteger(cost) || cost < 1 || cost > MAX_POINTS) {
    return { problem: 'has no valid "cost"' };
  }
  // Older versions of Weir did not log the kind.
  const known = kind ?? KINDS_BY_METHOD[method as keyof typeof KINDS_BY_METHOD];
  if (known !== 'read' && known !== 'write') return { problem: 'has no "kind"' };
  const access = personOnly === true ? 'person' : isPublic === true ? 'public' : 'caller';
  return { kind: known, cost, access };
}

function newPrice({ method, path }: WeirLine, priceOf: PriceOf): PriceReading {
  if (typeof method !== 'string' || typeof path !== 'string')
    return { problem: 'has no "method" and "path"' };
  return priceOf(method, path) ?? { problem: 'is not charged', skipped: 'uncharged' };
}

function entryOf(record: WeirLine, { kind, cost, access }: Price): Entry | Skipped | Unreadable {
  const { time, outcome, bucket } = record;
  if (typeof time !== 'number') return { problem: 'has no "time"' };
  const payer = access === 'public' ? addressOf(record) : callerOf(record);
  if (typeof payer === 'string' || 'problem' in payer) return payer;
  return {
    atUs: chargedAtUs(record, time),
    loggedUs: time * 1000,
    kind,
    cost,
    access,
    ...payer,
    wasRefused: outcome === 'denied',
    refusedBy: typeof bucket === 'string' ? bucket : undefined,
  };
}

type PayerMembers = Pick<Entry, 'account' | 'organization' | 'principal' | 'address'>;

function callerOf({
  account,
  organization,
  principal,
  organizationLimit,
  address,
}: WeirLine): PayerMembers | Skipped | Unreadable {
  // The operation was public when the line was written.
  if (account === undefined && typeof address === 'string') return 'anonymous';
  if (typeof account !== 'string' || typeof principal !== 'string') {
    return { problem: 'has no "account" and "principal"' };
  }
  const isCharged = typeof organization === 'string' && organizationLimit !== false;
  return { account, organization: isCharged ? organization : undefined, principal };
}

/** Lines of operations that were not public then have no address. */
function addressOf({ address }: WeirLine): PayerMembers | Skipped {
  if (typeof address !== 'string') return 'anonymous';
  return { account: '', organization: undefined, principal: '', address };
}

/** The time of the charge, or of the request's arrival if the line lacks it. */
function chargedAtUs({ chargedAtUs, totalMs }: WeirLine, timeMs: number): number {
  if (typeof chargedAtUs === 'number') return chargedAtUs;
  return Math.round((timeMs - (typeof totalMs === 'number' ? totalMs : 0)) * 1000);
}
