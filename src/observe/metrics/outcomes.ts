/** The values of labels that describe a request. None of them is taken from the request itself. */
import { CONTRACT_ROWS, contractScopes, KINDS } from '../../domain/limits/rows.ts';
import type { Access, OperationKind } from '../../domain/operation.ts';
import { PROBLEM_CODES } from '../../domain/problems.ts';
import { BLOCKED } from '../../facts/blocks.ts';
import type { RequestContext } from '../../stages/request-context.ts';

const BLOCKED_KINDS = KINDS.map((kind) => ({ kind, name: BLOCKED }));

const ACCESSES = ['caller', 'person', 'public'] as const satisfies readonly Access[];

/** The refusals of a request that was already charged. */
const AFTER_CHARGE = ['BadRequest', 'PayloadTooLarge', 'ValidationError', 'ServiceUnavailable'];

/** By the first digit of the status. */
const CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Every combination of kind, bucket and outcome that a request can have. */
export function* knownOutcomes(): Generator<readonly [kind: string, bucket: string, outcome: string]> {
  const codes = PROBLEM_CODES.filter((code) => code !== 'RateLimitExceeded');
  for (const outcome of [...codes, 'free']) {
    for (const kind of ['none', ...KINDS]) yield [kind, 'none', outcome];
  }
  for (const { kind, name } of [...CONTRACT_ROWS, ...BLOCKED_KINDS]) yield [kind, name, 'denied'];
  for (const kind of KINDS) {
    for (const access of ACCESSES) {
      const bucket = firstBucket(kind, access);
      for (const outcome of ['admitted', 'uncounted', ...AFTER_CHARGE]) yield [kind, bucket, outcome];
    }
  }
}

/** The bucket that refused the request, otherwise the first bucket that the request was charged to. */
export function bucketOf({ operation, charged }: RequestContext): string {
  if (charged?.outcome === 'denied') return charged.bucket;
  if (operation === undefined || charged === undefined) return 'none';
  return firstBucket(operation.kind, operation.access);
}

export function outcomeOf({ charged, refusal }: RequestContext): string {
  if (refusal !== undefined && refusal.code !== 'RateLimitExceeded') return refusal.code;
  return charged?.outcome ?? 'free';
}

/** The contract's bucket of the Account, Person or address. */
function firstBucket(kind: OperationKind, access: Access): string {
  return `${contractScopes(access)[0]}-${kind}`;
}

/** Every combination of source and status class that a response can have. The gateway answers preflight requests and refusals. */
export function* knownResponses(): Generator<readonly [source: string, statusClass: string]> {
  for (const statusClass of CLASSES.slice(1)) yield ['upstream', statusClass];
  for (const statusClass of ['2xx', '4xx', '5xx']) yield ['gateway', statusClass];
}

/** Undefined if the client left before a response began. */
export function statusClassOf(status: number): string | undefined {
  return CLASSES[Math.floor(status / 100)] || undefined;
}
