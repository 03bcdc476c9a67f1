import type { Priced, Settle } from './settlement.ts';

/** Such as `reserves 4000, settles by /usage/total_tokens`; undefined if the cost is final. */
export function settlementText({ cost, settlement }: Priced): string | undefined {
  if (settlement === undefined) return undefined;
  const { reserve, settle, refundOn } = settlement;
  const parts: string[] = [];
  if (reserve !== undefined)
    parts.push(`reserves ${reserve.json.text} of the body, at most ${reserve.most}, ${cost} without it`);
  else if (settle !== undefined) parts.push(`reserves ${cost}`);
  if (settle !== undefined) parts.push(`settles by ${sourceText(settle)}`);
  if (refundOn.size > 0) parts.push(`costs nothing on ${[...refundOn].join(' and ')}`);
  return parts.join(', ');
}

function sourceText(settle: Settle): string {
  if (settle.kind === 'json') return settle.json.text;
  return settle.kind === 'header' ? `the field ${settle.header}` : `a point for each ${settle.bytes} bytes`;
}

/** The settings, for programs; null where the operation has none. */
export function settlementJson({ settlement }: Priced) {
  const { reserve, settle, refundOn = [] } = settlement ?? {};
  return {
    reserve: reserve === undefined ? null : { json: reserve.json.text, most: reserve.most },
    settle: settle === undefined ? null : settleJson(settle),
    refundOn: [...refundOn],
  };
}

function settleJson(settle: Settle) {
  if (settle.kind === 'json') return { json: settle.json.text };
  return settle.kind === 'header' ? { header: settle.header } : { bytes: settle.bytes };
}
