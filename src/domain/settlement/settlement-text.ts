import type { Priced, Reserve, Settle } from './settlement.ts';

/** Such as `reserves 4000, settles by /usage/total_tokens`; undefined if the cost is final. */
export function settlementText({ cost, settlement }: Priced): string | undefined {
  if (settlement === undefined) return undefined;
  const { reserve, settle, refundOn } = settlement;
  const parts: string[] = [];
  if (reserve !== undefined)
    parts.push(`reserves ${reserveText(reserve)}, at most ${reserve.most}, ${cost} without it`);
  else if (settle !== undefined) parts.push(`reserves ${cost}`);
  if (settle !== undefined) parts.push(`settles by ${sourceText(settle)}`);
  if (refundOn.size > 0) parts.push(`costs nothing on ${[...refundOn].join(' and ')}`);
  return parts.join(', ');
}

function reserveText({ json, meanings }: Reserve): string {
  const read = meanings?.flatMap(({ settlement }) => settlement?.reserve?.json.text ?? []) ?? [json.text];
  return `${read.length > 1 ? 'the most of ' : ''}${read.join(' and ')} of the body`;
}

function sourceText(settle: Settle): string {
  if (settle.kind === 'most') {
    const sources = settle.of.map(sourceText).join(' and ');
    const most = settle.of.length > 1 ? `the most of ${sources}` : sources;
    return settle.keepsReservation ? `${most}, at least what it reserves` : most;
  }
  if (settle.kind === 'json') return settle.json.text;
  return settle.kind === 'header' ? `the field ${settle.header}` : `a point for each ${settle.bytes} bytes`;
}

/** The settings, for programs; null where the operation has none. */
export function settlementJson({ settlement }: Priced) {
  const { reserve, settle, refundOn = [] } = settlement ?? {};
  return {
    reserve: reserve === undefined ? null : reserveJson(reserve),
    settle: settle === undefined ? null : settleJson(settle),
    refundOn: [...refundOn],
  };
}

function reserveJson({ json, most, meanings }: Reserve) {
  if (meanings === undefined) return { json: json.text, most };
  const mostOf = meanings.map(({ cost, settlement }) => {
    const reserve = settlement?.reserve;
    return { cost, json: reserve?.json.text ?? null, most: reserve?.most ?? cost };
  });
  return { mostOf, most };
}

function settleJson(settle: Settle): object {
  if (settle.kind === 'most')
    return { mostOf: settle.of.map(settleJson), keepsReservation: settle.keepsReservation };
  if (settle.kind === 'json') return { json: settle.json.text };
  return settle.kind === 'header' ? { header: settle.header } : { bytes: settle.bytes };
}
