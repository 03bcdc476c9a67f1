import type { Principal } from '../../../domain/caller.ts';
import { Refusal } from '../../../domain/problems.ts';
import type { Buckets } from '../../../stages/buckets/buckets.ts';
import type { PayerBucket } from '../../../stages/buckets/payer-bucket.ts';
import { isFree } from '../../../stages/decide.ts';
import { isMethod, type OperationTable, refuseMethod } from '../../../stages/match.ts';
import { normalise } from '../../../stages/normalise.ts';
import type { PathProfile } from '../../../stages/path/folded-path.ts';
import type { RequestContext, RequestSource } from '../../../stages/request-context.ts';
import { costIn } from '../../../store/store.ts';
import type { PortRequest } from '../../entrance.ts';
import { heldMsOf, type Question } from './question.ts';

/** What a program asks about. */
export class AskedSource implements RequestSource {
  readonly isPeek: boolean;
  readonly askedCost: number | undefined;
  readonly askedLimits: readonly string[] | undefined;
  readonly heldMs: number | undefined;
  /** The request of the program. */
  readonly outer: PortRequest;
  readonly #question: Question;

  /** @param canHold whether it can be held, if it asks for it */
  constructor(question: Question, outer: PortRequest, canHold: boolean) {
    this.#question = question;
    this.outer = outer;
    this.isPeek = question.peek === true;
    this.askedCost = question.cost;
    this.askedLimits = question.limits;
    this.heldMs = canHold ? heldMsOf(question) : undefined;
  }

  /** Whether the question asks for a receipt. */
  get isToBeHeld(): boolean {
    return this.#question.hold !== undefined;
  }

  /** The principal of a question that names an Account. */
  get principal(): Principal | undefined {
    const { account, principal } = this.#question;
    if (account === undefined) return undefined;
    // For a directory of claims: the program names no Organization, so its limits do not apply. Other directories know it.
    const claimedAccounts = new Map([[account, {}]]);
    return {
      id: principal ?? account,
      type: 'ServiceAccount',
      account,
      actsFor: new Set<string>(),
      claimedAccounts,
    };
  }

  field(name: string): string | undefined {
    const { token, serviceAccount, account } = this.#question;
    if (name === 'x-service-account') return serviceAccount;
    // The Account's principal is given, whatever token it would have.
    const credential = token ?? account;
    return name === 'authorization' && credential !== undefined ? `Bearer ${credential}` : undefined;
  }

  valuesOf(): readonly string[] {
    return [];
  }
}

/** A request that a program asks about. */
export type AskedRequest = RequestContext<AskedSource>;

/** Finds out what is asked about, or why that is not clear. */
export function aim(
  request: AskedRequest,
  { operation, method = '', path = '' }: Question,
  operations: OperationTable,
  profile: PathProfile,
): Refusal | undefined {
  if (operation !== undefined) {
    const named = operations.named(operation);
    if (named === undefined) return new Refusal('ResourceNotFound', 'There is no operation with this id.');
    request.method = named.method;
    request.target = { path: named.path, search: '' };
    return undefined;
  }
  request.method = method;
  if (!isMethod(method)) return refuseMethod();
  const target = normalise(path, profile, (folded) => operations.servesSlash(method, folded));
  if (target instanceof Refusal) return target;
  request.target = target;
  return undefined;
}

/** Of a program that left before it was decided what it asks. */
export const ABANDONED = new Refusal('BadRequest', 'The program closed the connection.');

/**
 * Why nothing is charged: the program has left, or the question names limits that cannot be charged, or a cost that no wait makes fit. Such a
 * cost is found before the charge, because the store's refusal would count and be reported as a limit that is reached.
 */
export function refuseAsked(
  request: AskedRequest,
  { buckets }: { readonly buckets: Buckets },
): Refusal | undefined {
  if (isFree(request)) return undefined;
  const { operation, caller, publicClient } = request;
  const { outer, askedLimits, askedCost, isToBeHeld } = request.source;
  if (outer.source.isAbandoned) return ABANDONED;
  const payer = caller ?? publicClient;
  if (askedLimits === undefined && askedCost === undefined) return undefined;
  if (operation === undefined || payer === undefined) return undefined;
  const due = buckets.bucketsFor(payer, operation);
  // A question that asks for a hold may name all limits, also while nothing can be held.
  const charged = (isToBeHeld ? due : (due.endless ?? due)).buckets;
  return refuseLimits(askedLimits, charged, due.buckets) ?? refuseCost(askedCost, charged, askedLimits);
}

/** @param all also the limits that need a hold */
function refuseLimits(
  names: readonly string[] = [],
  charged: readonly PayerBucket[],
  all: readonly PayerBucket[],
): Refusal | undefined {
  const errors = names.flatMap((name, index) => {
    const isNamed = (bucket: PayerBucket) => bucket.name === name;
    if (charged.some(isNamed)) return [];
    const message = all.some(isNamed)
      ? 'counts concurrent requests, and needs a hold that says when they end'
      : 'is no limit of this request';
    return [{ field: `limits[${index}]`, message }];
  });
  if (errors.length === 0) return undefined;
  return new Refusal('ValidationError', 'The limits that the question names cannot be charged.', { errors });
}

/** @param names of the only limits that are charged; undefined for all */
function refuseCost(
  cost = 0,
  charged: readonly PayerBucket[],
  names: readonly string[] | undefined,
): Refusal | undefined {
  const bucket = charged.find(
    (one) =>
      one.shadow !== true &&
      one.limit < costIn(one, cost) &&
      (names === undefined || names.includes(one.name)),
  );
  if (bucket === undefined) return undefined;
  return new Refusal('ValidationError', 'The cost can never be admitted.', {
    errors: [
      { field: 'cost', message: `is above the limit of ${bucket.name}, which is ${bucket.limit} points` },
    ],
  });
}
