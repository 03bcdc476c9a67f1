import type { Payer } from '../../../domain/caller.ts';
import { calendarOf, type PeriodRule } from '../../../domain/limits/calendar.ts';
import type { ScopeName } from '../../../domain/limits/scopes.ts';
import type { Access, OperationKind } from '../../../domain/operation.ts';
import { payingAccess } from '../../../stages/request-context.ts';
import { bucketOf, PERIOD_ENDING, SLOTS_ENDING } from '../../../store/keys.ts';
import { type BucketCharge, recordedLimit } from '../../../store/store.ts';
import type { HeldDecision } from './held-decisions.ts';
import { SIGNATURE_BYTES } from './known-keys.ts';
import type { ReceiptKeys } from './receipt-keys.ts';

/** Longer texts are no receipts: 32 buckets of the longest ids come to 24,000 characters. */
export const LONGEST_RECEIPT = 32_768;

/** Other forms have other numbers. */
const FORM = 1;

/**
 * A bucket: its key behind the tag, its limit, its window, what it counts, its period, the scope and owner of its record, and what it was
 * charged if that is not the cost.
 */
type Bucket = readonly [
  key: string,
  limit: number,
  windowSeconds: number,
  counts: number,
  rule: readonly [PeriodRule['unit'], string, number] | 0,
  record: readonly [ScopeName, string] | 0,
  // Earlier versions write none, and read none.
  cost?: number,
];

type Content = readonly [
  id: string,
  requestId: string,
  payer: Payer,
  operation: readonly [id: string, kind: OperationKind, access: Access],
  cost: number,
  times: readonly [chargedAtUs: number, decidedMs: number, heldMs: number],
  tag: string,
  buckets: readonly Bucket[],
  askedLimits: readonly string[] | null,
];

const COUNTS = ['points', 'requests', 'concurrent'] as const;
/** Added to the number of what a shadow bucket counts. */
const SHADOW = COUNTS.length;

/**
 * Writes and reads receipts: a form, a signature and a content in base64url. They are signed and not encrypted: a program can read
 * the ids in its receipts.
 */
export class Receipts {
  readonly #keys: ReceiptKeys;
  readonly #keyPrefix: string;

  constructor(keys: ReceiptKeys, keyPrefix: string) {
    this.#keys = keys;
    this.#keyPrefix = keyPrefix;
  }

  /** Whether receipts can be written. */
  canWrite(): Promise<boolean> {
    return this.#keys.areKnown();
  }

  close(): void {
    this.#keys.close();
  }

  write(decision: HeldDecision): string {
    const { id, requestId, payer, operation, charge, chargedAtUs, decidedMs, askedLimits } = decision;
    const { buckets, cost, heldMs = 0 } = charge;
    const start = this.#keyPrefix.length + ':1:{'.length;
    const tagEnd = buckets[0]?.key.indexOf('}:') ?? start;
    const tag = buckets[0]?.key.slice(start, tagEnd) ?? '';
    const packed = buckets.map((bucket) => pack(bucket, tagEnd + 2));
    const { id: name, kind } = operation;
    const access = payingAccess(operation);
    const times = [chargedAtUs, decidedMs, heldMs] as const;
    const named = askedLimits ?? null;
    const parts: Content = [id, requestId, payer, [name, kind, access], cost, times, tag, packed, named];
    const content = Buffer.from(`${FORM}${JSON.stringify(parts)}`);
    return Buffer.concat([this.#keys.sign(content), content]).toString('base64url');
  }

  /**
   * Takes linear time in the text. The content is parsed only if its signature is valid, which is `unavailable` as long as the key is
   * unknown.
   */
  async read(receipt: string): Promise<HeldDecision | 'unknown' | 'unavailable'> {
    if (receipt.length > LONGEST_RECEIPT) return 'unknown';
    const bytes = Buffer.from(receipt, 'base64url');
    // Node's decoder skips what is not base64url, so that several texts would be one receipt.
    if (bytes.length <= SIGNATURE_BYTES || bytes.toString('base64url') !== receipt) return 'unknown';
    const content = bytes.subarray(SIGNATURE_BYTES);
    const isSigned = await this.#keys.isSigned(content, bytes.subarray(0, SIGNATURE_BYTES));
    if (isSigned === undefined) return 'unavailable';
    const text = content.toString();
    if (!isSigned || !text.startsWith(`${FORM}[`)) return 'unknown';
    const parts = JSON.parse(text.slice(1)) as Content;
    const [id, requestId, payer, [name, kind, access], cost, times, tag, packed, named] = parts;
    const [chargedAtUs, decidedMs, heldMs] = times;
    const buckets = packed.map((bucket) => unpack(bucket, `${this.#keyPrefix}:1:{${tag}}:`));
    const charge = { buckets, cost, operation: name, heldMs };
    const operation = { id: name, kind, access, cost, listed: true };
    const askedLimits = named ?? undefined;
    return { id, requestId, payer: restored(payer), operation, charge, chargedAtUs, decidedMs, askedLimits };
  }
}

/** JSON has neither sets nor maps. Usage needs neither. */
function restored(payer: Payer): Payer {
  if (payer.principal === undefined) return payer;
  const { claimedAccounts: _, ...principal } = payer.principal;
  if (principal.account === undefined) return { ...payer, principal };
  return { ...payer, principal: { ...principal, actsFor: new Set<string>() } };
}

function pack(bucket: BucketCharge, start: number): Bucket {
  const {
    key,
    limit,
    windowSeconds,
    counts = 'points',
    shadow,
    calendar,
    record,
    owner = '',
    cost = 0,
  } = bucket;
  const { unit = 'day', timeZone = '', startsOn = 0 } = calendar?.rule ?? {};
  const number = COUNTS.indexOf(counts) + (shadow === true ? SHADOW : 0);
  const rule = calendar === undefined ? 0 : ([unit, timeZone, startsOn] as const);
  const recorded = record === undefined ? 0 : ([record.scope, owner] as const);
  return [key.slice(start), limit, windowSeconds, number, rule, recorded, cost];
}

function unpack(
  [rest, limit, windowSeconds, number, rule, recorded, cost = 0]: Bucket,
  start: string,
): BucketCharge {
  const key = start + rest;
  const calendar =
    rule === 0 ? undefined : calendarOf({ unit: rule[0], timeZone: rule[1], startsOn: rule[2] });
  const [scope, owner] = recorded === 0 ? [] : recorded;
  return {
    key,
    limit,
    windowSeconds,
    counts: COUNTS[number % SHADOW] ?? 'points',
    shadow: number >= SHADOW,
    calendar,
    record: scope && recordedLimit({ scope, name: nameOf({ key }), windowSeconds, calendar }),
    owner,
    ...(cost > 0 && { cost }),
  };
}

/** The name of the limit that a bucket belongs to. */
export function nameOf({ key }: Pick<BucketCharge, 'key'>): string {
  const name = bucketOf(key);
  const ending = [SLOTS_ENDING, PERIOD_ENDING].find((one) => name.endsWith(one)) ?? '';
  return name.slice(0, name.length - ending.length);
}
