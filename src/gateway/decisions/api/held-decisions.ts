import type { Payer } from '../../../domain/caller.ts';
import { ownCopy } from '../../../domain/field-name.ts';
import { type Operation, payingAccess } from '../../../stages/request-context.ts';
import { settledKey } from '../../../store/keys.ts';
import { type Charge, countedPart } from '../../../store/store.ts';
import type { GatewayDependencies } from '../../dependencies.ts';
import type { AskedRequest } from './asked-request.ts';

/** Decisions whose end is waited for, at most. Of more, those that nobody settles are missing in usage and in the access log. */
const MOST_WATCHED = 100_000;

/** The clock of the store may be behind. */
const LATE_MS = 2_000;

/** How soon the store is asked again if it did not answer. */
const AGAIN_MS = 5_000;

/** The store knows for 90 s after a hold whether it was settled. An answer takes time, and the store's clock may be ahead. */
const KNOWN_MS = 80_000;

/** The end of a hold, for a store that is only asked whether it was settled. */
const LONG_AGO_US = 1;

/** A decision that a program holds: what its receipt says. */
export interface HeldDecision {
  /** Names its settlement. */
  readonly id: string;
  readonly requestId: string;
  readonly payer: Payer;
  readonly operation: Operation;
  readonly charge: Charge;
  /** By the store's clock. */
  readonly chargedAtUs: number;
  /** The Unix time of the decision, by the clock of the replica that made it. */
  readonly decidedMs: number;
  /** The limits that the program named; undefined if it named none. */
  readonly askedLimits: readonly string[] | undefined;
}

/** A decision that is to be held; undefined if it was not charged. */
export function heldDecision(request: AskedRequest, id: string): HeldDecision | undefined {
  const { caller, publicClient, operation, asked, decision, source } = request;
  const payer = caller ?? publicClient;
  if (source.heldMs === undefined || asked === undefined || operation === undefined) return undefined;
  if (payer === undefined || decision?.outcome !== 'admitted') return undefined;
  const { chargedAtUs, buckets } = decision;
  const counted = countedPart(asked, buckets);
  const charge = counted.buckets.length === 0 ? settlingNothing(asked) : counted;
  const { askedLimits } = source;
  const requestId = ownCopy(request.requestId);
  return { id, requestId, payer, operation, charge, chargedAtUs, decidedMs: Date.now(), askedLimits };
}

/**
 * For a charge that only full shadow limits were compared with. The key of its one bucket says in which Cluster slot a settlement is marked.
 * No request takes slots under this key, so the settlement frees none.
 */
function settlingNothing(asked: Charge): Charge {
  const key = settledKey(asked.buckets[0]?.key ?? '', 'nothing');
  return { ...asked, buckets: [{ key, limit: 1, windowSeconds: 0, counts: 'concurrent', shadow: true }] };
}

/**
 * Counts what held decisions have cost in the end, once for each: the replica that settles one counts it, and the replica that has made one
 * counts its reservation if nobody has settled it until its end. If that replica stops before, or the store does not say in time whether it
 * was settled, nobody counts it: another replica may have done so.
 */
export class HeldDecisions {
  readonly #dependencies: GatewayDependencies;
  readonly #ends = new Map<string, NodeJS.Timeout>();
  #isClosed = false;

  constructor(dependencies: GatewayDependencies) {
    this.#dependencies = dependencies;
  }

  /** Waits for the end of a decision of this replica. */
  begun(decision: HeldDecision): void {
    if (this.#ends.size >= MOST_WATCHED) return;
    const heldMs = decision.charge.heldMs ?? 0;
    this.#endIn(heldMs + LATE_MS, decision, performance.now() + heldMs + KNOWN_MS);
  }

  /** Counts what a decision has cost, which this replica has settled. */
  settled(decision: HeldDecision, cost: number): void {
    this.#forget(decision);
    this.#count(decision, cost, 'settled');
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends.values()) clearTimeout(end);
    this.#ends.clear();
  }

  #endIn(ms: number, decision: HeldDecision, knownUntilMs: number): void {
    const end = setTimeout(() => void this.#end(decision, knownUntilMs), ms);
    this.#ends.set(decision.id, end.unref());
  }

  /** @param knownUntilMs until then the store knows whether another replica has settled it */
  async #end(decision: HeldDecision, knownUntilMs: number): Promise<void> {
    this.#forget(decision);
    const { charge, chargedAtUs, id } = decision;
    const { cost } = charge;
    // The first bucket names the slot of the mark in a Cluster.
    const asked = { ...charge, buckets: charge.buckets.slice(0, 1) };
    const settlement = {
      charge: asked,
      chargedAtUs,
      id,
      cost,
      refundsRequests: false,
      endsAtUs: LONG_AGO_US,
    };
    const settled = await this.#dependencies.store.settle(settlement);
    if (settled.outcome === 'already' || performance.now() > knownUntilMs) return;
    if (settled.outcome !== 'dropped' || settled.reason === 'invalid') this.#count(decision, cost, 'ended');
    else if (!this.#isClosed && settled.reason !== 'closed') this.#endIn(AGAIN_MS, decision, knownUntilMs);
  }

  #forget({ id }: HeldDecision): void {
    clearTimeout(this.#ends.get(id));
    this.#ends.delete(id);
  }

  #count(decision: HeldDecision, settled: number, outcome: 'settled' | 'ended'): void {
    const { payer, operation } = decision;
    const { observer, log, accessLog } = this.#dependencies;
    observer.heldEnded(payer, operation, settled);
    if (accessLog !== undefined) log.info({ ...lineOf(decision), settled, outcome }, 'settlement');
  }
}

const US_PER_MS = 1_000;

/** The members of a line of the access log that `weir replay` needs. */
function lineOf({ requestId, payer, operation, charge, decidedMs, askedLimits }: HeldDecision): object {
  const { account, organization, hasOrganizationLimit, principal, address, plan } = payer;
  const access = payingAccess(operation);
  return {
    requestId,
    operation: operation.id,
    account,
    organization,
    ...(organization !== undefined && hasOrganizationLimit === false && { organizationLimit: false }),
    principal: principal?.id,
    address,
    kind: operation.kind,
    ...(access === 'person' && { personOnly: true }),
    ...(access === 'public' && { public: true }),
    plan,
    chargedAtUs: decidedMs * US_PER_MS,
    cost: charge.cost,
    limits: askedLimits,
  };
}
