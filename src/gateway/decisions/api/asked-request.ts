import { randomUUID } from 'node:crypto';
import type { Principal } from '../../../domain/caller.ts';
import { Refusal } from '../../../domain/problems.ts';
import { clientNetwork } from '../../../http/message/fields/forwarded.ts';
import type { Buckets, PayerBuckets } from '../../../stages/buckets/buckets.ts';
import type { PayerBucket } from '../../../stages/buckets/payer-bucket.ts';
import type { DecidedRequest } from '../../../stages/decide.ts';
import type { Exchange } from '../../../stages/exchange.ts';
import type { Identified } from '../../../stages/identify.ts';
import { METHODS, type OperationTable, refuseMethod } from '../../../stages/match.ts';
import { normalise } from '../../../stages/normalise.ts';
import type { PathProfile } from '../../../stages/path/profile.ts';
import type { RequestContext, Target } from '../../../stages/request-context.ts';
import type { Decision } from '../../../store/store.ts';
import type { Question } from './question.ts';

/** A request that a program asks about. */
export class AskedRequest implements DecidedRequest, RequestContext {
  readonly protocol = 'decide';
  readonly requestId: string;
  readonly startedMs = performance.now();
  readonly traceparent: string;
  readonly clientAddress: string;
  readonly isPeek: boolean;
  readonly askedCost: number | undefined;
  readonly askedLimits: readonly string[] | undefined;
  method = '';
  target: Target | undefined;
  operation: RequestContext['operation'];
  identified: Identified | undefined;
  caller: RequestContext['caller'];
  publicClient: RequestContext['publicClient'];
  charged: RequestContext['charged'];
  chargeAskedMs: number | undefined;
  chargeMs: number | undefined;
  refusal: Refusal | undefined;
  due: PayerBuckets | undefined;
  decision: Decision | undefined;
  readonly #question: Question;
  readonly #exchange: Exchange;
  readonly #buckets: Buckets;

  /** @param isAlone whether it is the only one of its exchange, whose id it then has */
  constructor(question: Question, exchange: Exchange, isAlone: boolean, buckets: Buckets) {
    this.#question = question;
    this.#exchange = exchange;
    this.#buckets = buckets;
    this.requestId = isAlone ? exchange.requestId : randomUUID();
    this.traceparent = exchange.traceparent;
    this.clientAddress = question.address ?? exchange.clientAddress;
    this.isPeek = question.peek === true;
    this.askedCost = question.cost;
    this.askedLimits = question.limits;
  }

  /** Finds out what is asked about, or why that is not clear. */
  aimAt(operations: OperationTable, profile: PathProfile): Refusal | undefined {
    const { operation, method = '', path = '' } = this.#question;
    if (operation !== undefined) {
      const named = operations.named(operation);
      if (named === undefined) return new Refusal('ResourceNotFound', 'There is no operation with this id.');
      this.method = named.method;
      this.target = { path: named.path, search: '' };
      return undefined;
    }
    this.method = method;
    if (!METHODS.includes(method)) return refuseMethod();
    const target = normalise(path, profile, (folded) => operations.servesSlash(method, folded));
    if (target instanceof Refusal) return target;
    this.target = target;
    return undefined;
  }

  /** The principal of a question that names an Account. */
  get principal(): Principal | undefined {
    const { account, principal } = this.#question;
    if (account === undefined) return undefined;
    return { id: principal ?? account, type: 'ServiceAccount', account, actsFor: new Set() };
  }

  get clientNetwork(): string {
    return clientNetwork(this.clientAddress);
  }

  field(name: string): string | undefined {
    const { token, account } = this.#question;
    // The Account's principal is given, whatever token it would have.
    const credential = token ?? account;
    return name === 'authorization' && credential !== undefined ? `Bearer ${credential}` : undefined;
  }

  valuesOf(): readonly string[] {
    return [];
  }

  cancelled(): Refusal | undefined {
    return this.#exchange.isAbandoned ? ABANDONED : this.#wrongLimits();
  }

  /** Why the limits that the question names cannot be charged. */
  #wrongLimits(): Refusal | undefined {
    const { askedLimits, operation, caller, publicClient } = this;
    const payer = caller ?? publicClient;
    if (askedLimits === undefined || operation === undefined || payer === undefined) return undefined;
    const due = this.#buckets.bucketsFor(payer, operation);
    const charged = (due.endless ?? due).buckets;
    const errors = askedLimits.flatMap((name, index) => {
      const isNamed = (bucket: PayerBucket) => bucket.name === name;
      if (charged.some(isNamed)) return [];
      const message = due.buckets.some(isNamed)
        ? 'counts concurrent requests, of which only the gateway sees the end'
        : 'is no limit of this request';
      return [{ field: `limits[${index}]`, message }];
    });
    if (errors.length === 0) return undefined;
    return new Refusal('ValidationError', 'The limits that the question names cannot be charged.', {
      errors,
    });
  }

  takeDecision(due: PayerBuckets, decision: Decision): void {
    this.due = due;
    this.decision = decision;
  }
}

const ABANDONED = new Refusal('BadRequest', 'The program closed the connection.');
