import type { CostedOperation } from '../config/checks/costs.ts';
import type { Place } from '../config/problem.ts';
import type { OperationKind } from '../domain/operation.ts';
import type { BodyRules } from './validation/body.ts';
import type { HeaderRule, PathRule } from './validation/path-and-headers.ts';
import type { QueryRules } from './validation/query.ts';

/** The methods that are charged, and the kind of bucket that each is charged to (contract section 8.1). */
export const KINDS_BY_METHOD = {
  GET: 'read',
  HEAD: 'read',
  QUERY: 'read',
  POST: 'write',
  PUT: 'write',
  PATCH: 'write',
  DELETE: 'write',
} as const;

/** Further methods that the gateway can read. It serves them where a document declares them (OpenAPI 3.2 `additionalOperations`). */
export const ADDITIONAL_METHODS: ReadonlySet<string> = new Set([
  ...[
    'ACL',
    'BIND',
    'CHECKOUT',
    'COPY',
    'LINK',
    'LOCK',
    'MERGE',
    'MKACTIVITY',
    'MKCALENDAR',
    'MKCOL',
    'MOVE',
  ],
  ...[
    'NOTIFY',
    'PROPFIND',
    'PROPPATCH',
    'PURGE',
    'REBIND',
    'REPORT',
    'SEARCH',
    'SUBSCRIBE',
    'UNBIND',
    'UNLINK',
  ],
  ...['UNLOCK', 'UNSUBSCRIBE'],
]);

/** The kind of bucket of a method, unless `x-weir` sets one. What an additional method does is unknown, so it counts as a write. */
export function kindOf(method: string): OperationKind {
  return KINDS[method] ?? 'write';
}

const KINDS: Readonly<Record<string, OperationKind>> = KINDS_BY_METHOD;

/** Contract section 8.1 rule 3: "Most operations cost 1 point." */
export const DEFAULT_COST = 1;

/** The message and the hint for a path with parameters as a router writes them, such as `/users/:id`. Undefined for other paths. */
export function bracesAdvice(path: string): readonly [message: string, hint: string] | undefined {
  const meant = path.replaceAll(/(?<=\/):([\w-]+)(?=\/|$)/g, '{$1}');
  return meant === path ? undefined : ['has parameters in braces', `did you mean "${meant}"?`];
}

/** The compiled rules for the requests of one operation. */
export interface RequestRules {
  readonly query: QueryRules;
  readonly path: readonly PathRule[];
  readonly headers: readonly HeaderRule[];
  /** Undefined if the body is streamed without validation. */
  readonly body: BodyRules | undefined;
}

/** An operation and its cost, from an OpenAPI document or the setting `operations.list`. */
export interface ListedOperation extends CostedOperation {
  /** Upper case. */
  readonly method: string;
  /** With the base path of the document's servers, such as `/v3/payments/payables/{payableId}/open`. */
  readonly path: string;
  readonly listed: true;
  readonly writtenAt: Place;
  /** Where the cost is set; undefined if it is the default of 1. */
  readonly costWrittenAt: Place | undefined;
  /** The parts of a request that are validated before it is forwarded. */
  readonly validation: 'none' | 'parameters' | 'body';
  /** The rules for validating a request; undefined if nothing is validated. */
  readonly rules: RequestRules | undefined;
}
