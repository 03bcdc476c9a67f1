import type { Priced, Reserve, Settle, SettlementRules, SettleSource } from './settlement.ts';

/**
 * How a request is settled that may be for any of these operations. It costs at least what it would cost as each of them alone, so that no
 * client chooses a cheaper way to be settled by another name of a path:
 *
 * * it reserves the most that any of them reserves;
 * * only a status that all of them refund costs nothing;
 * * it costs the most that any of them settles to. If one of them is not settled, or a cost is unknown, it costs at least its reservation.
 *
 * @returns undefined if the cost is final when the request is admitted
 */
export function combinedSettlement(meanings: readonly Priced[]): SettlementRules | undefined {
  // An operation that costs 0 is not charged, so it needs no points kept.
  const charged = meanings.filter(({ cost }) => cost > 0);
  const rules = charged.flatMap(({ settlement }) => settlement ?? []);
  const reserve = combinedReserve(charged, rules);
  const settle = combinedSettle(charged, rules);
  const refundOn = rules.length === charged.length ? refundedByAll(rules) : new Set<string>();
  if (reserve === undefined && settle === undefined && refundOn.size === 0) return undefined;
  return { reserve, settle, refundOn };
}

function combinedReserve(charged: readonly Priced[], rules: readonly SettlementRules[]): Reserve | undefined {
  const [first] = rules.flatMap(({ reserve }) => reserve ?? []);
  if (first === undefined) return undefined;
  const most = Math.max(...charged.map(({ cost, settlement }) => settlement?.reserve?.most ?? cost));
  return { ...first, most, meanings: charged };
}

function combinedSettle(charged: readonly Priced[], rules: readonly SettlementRules[]): Settle | undefined {
  const found = rules.flatMap(({ settle }) => (settle === undefined || settle.kind === 'most' ? [] : settle));
  const different = [...new Map(found.map((settle) => [sourceOf(settle), settle])).values()];
  const isEachSettled = found.length === charged.length;
  const [first] = different;
  if (first === undefined || (isEachSettled && different.length === 1)) return first;
  return { kind: 'most', of: different, keepsReservation: !isEachSettled };
}

/** The same for rules that read the same. */
function sourceOf(settle: SettleSource): string {
  return JSON.stringify(settle.kind === 'json' ? settle.json.text : settle);
}

/** A class of one is a status of another. */
function refundedByAll(rules: readonly SettlementRules[]): ReadonlySet<string> {
  const named = rules.flatMap(({ refundOn }) => [...refundOn]);
  return new Set(
    named.filter((one) => rules.every(({ refundOn }) => refundOn.has(one) || refundOn.has(`${one[0]}xx`))),
  );
}
