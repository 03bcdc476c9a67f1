import type { PricedOperation } from '../config/files/costs.ts';
import type { Place } from '../config/problem.ts';
import type { RequestRules } from '../validation/rules.ts';

/** The methods that spend points, and the buckets that they spend from (contract 8.1). */
export const KINDS_BY_METHOD = {
  GET: 'read',
  HEAD: 'read',
  POST: 'write',
  PUT: 'write',
  PATCH: 'write',
  DELETE: 'write',
} as const;

/** Contract 8.1 rule 3: "Most operations cost 1 point." */
export const DEFAULT_COST = 1;

/** How much of a request is validated before it is forwarded. */
export type Validation = 'none' | 'parameters' | 'body';

/** One operation with its price, as the OpenAPI document or the setting `operations.list` has it. */
export interface ListedOperation extends PricedOperation {
  /** Upper case. */
  readonly method: string;
  /** With the base path of the document's servers, such as `/v3/payments/payables/{payableId}/open`. */
  readonly path: string;
  readonly listed: true;
  readonly writtenAt: Place;
  /** Where the cost is written; undefined where it is the default of 1. */
  readonly costWrittenAt: Place | undefined;
  readonly validation: Validation;
  /** What a request must satisfy; undefined where nothing is validated. */
  readonly rules: RequestRules | undefined;
}
