import type { Advice } from '../config/problem.ts';
import { JsonPointer } from '../domain/settlement/json-pointer.ts';
import type { Settle, SettlementRules } from '../domain/settlement/settlement.ts';

/** The settings of a settlement, in an `x-weir` or an entry of `operations.list`. They match the schemas. */
export interface GivenSettlement {
  readonly reserve?: { readonly json: string; readonly most: number };
  readonly settle?: { readonly json?: string; readonly header?: string; readonly bytes?: number };
  readonly refundOn?: readonly (string | number)[];
}

/** What no schema can say of `settle`; undefined if it has one source. */
export function sourceProblem({ settle }: GivenSettlement): Advice | undefined {
  const sources = Object.keys(settle ?? {});
  if (settle === undefined || sources.length === 1) return undefined;
  const message = sources.length === 0 ? 'is empty' : `names ${sources.join(' and ')}`;
  return { message, hint: 'a cost has one source: json, header or bytes' };
}

/** Why no more than `most` points could be reserved; undefined if the cost is at most that. */
export function mostProblem({ reserve }: GivenSettlement, cost: number): Advice | undefined {
  if (reserve === undefined || reserve.most >= cost) return undefined;
  return {
    message: `is ${reserve.most}, below the cost ${cost}, which is reserved if the body has no ${reserve.json}`,
    hint: 'raise it to at least the cost',
  };
}

/** Why an operation that costs 0 cannot have one of these settings. */
export const NOT_CHARGED: Advice = {
  message: 'has no effect on an operation that costs 0',
  hint: 'set a cost of at least 1',
};

/** Settings of all operations. */
export interface SettlementSettings {
  readonly refundOn: readonly (string | number)[];
  readonly maxBodyBytes: number;
}

/** Undefined if the cost is final when a request is admitted. */
export function settlementOf(
  { reserve, settle, refundOn }: GivenSettlement,
  settings: SettlementSettings,
): SettlementRules | undefined {
  const refunded = new Set((refundOn ?? settings.refundOn).map(String));
  if (reserve === undefined && settle === undefined && refunded.size === 0) return undefined;
  return {
    reserve: reserve && {
      json: new JsonPointer(reserve.json),
      most: reserve.most,
      maxBodyBytes: settings.maxBodyBytes,
    },
    settle: settle && sourceOf(settle),
    refundOn: refunded,
  };
}

function sourceOf({ json, header, bytes }: NonNullable<GivenSettlement['settle']>): Settle | undefined {
  if (json !== undefined) return { kind: 'json', json: new JsonPointer(json) };
  if (header !== undefined) return { kind: 'header', header: header.toLowerCase() };
  return bytes === undefined ? undefined : { kind: 'bytes', bytes };
}
