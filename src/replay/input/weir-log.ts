import { networkOf } from '../../domain/network.ts';
import type { Access } from '../../domain/operation.ts';
import { isRefunded, MAX_POINTS } from '../../domain/settlement/settlement.ts';
import { KINDS_BY_METHOD } from '../../operations/listed-operation.ts';
import type { Operation } from '../../stages/request-context.ts';
import type { LogEntry, OperationFinder, PayerMembers, ReadLine, Skipped, Unreadable } from './entry.ts';
import { LoggedOperations } from './logged-operations.ts';
import { jsonFields, type LogFields } from './text-formats.ts';
import { isLogTime, startOf } from './times.ts';

/**
 * Reads Weir's own access log (docs/access-log.md), including lines with a prefix or wrapper of Docker, containerd or `kubectl logs
 * --prefix`.
 *
 * @param finder finds the operation whose cost and selections replace the logged ones
 */
export function weirLog(finder?: OperationFinder): ReadLine {
  const logged = new LoggedOperations();
  return (line) => {
    const record = parsed(line);
    if (record === undefined) return { problem: 'is not a JSON object' };
    // A decision that a program has held.
    if (record.msg === 'settlement') return entryOf(record, heldCost(record, finder, logged));
    // What was held has cost what the line of its settlement says.
    const isHeld = record.heldMs !== undefined && record.outcome === 'admitted';
    return record.msg === 'request' && !isHeld ? readRequest(record, finder, logged) : 'other';
  };
}

function readRequest(
  record: LogFields,
  finder: OperationFinder | undefined,
  logged: LoggedOperations,
): LogEntry | Skipped | Unreadable {
  const { outcome } = record;
  // What was free may have a cost in another document.
  if (outcome === 'refused' || (outcome === 'free' && finder === undefined)) return 'uncharged';
  if (outcome !== 'free' && outcome !== 'admitted' && outcome !== 'denied' && outcome !== 'uncounted') {
    return { problem: 'has no "outcome" of a request' };
  }
  // A block refuses also what is free or matches no operation, and the limit of the usage path is not one of the API.
  if (outcome === 'denied' && (record.cost === undefined || record.cost === 0)) return 'uncharged';
  const read = finder === undefined ? loggedCost(record, logged) : newCost(record, finder);
  return entryOf(record, read);
}

function parsed(line: string): LogFields | undefined {
  const record = jsonFields(line);
  return typeof record?.log === 'string' ? parsed(record.log) : record;
}

type CostReading =
  | { readonly operation: Operation; readonly cost: number; readonly reserved?: number | undefined }
  | (Unreadable & { readonly skipped?: Skipped });

function loggedCost(record: LogFields, logged: LoggedOperations): CostReading {
  const { kind, method, operation, settled } = record;
  const reserved = record.cost;
  // What the request has cost in the end.
  const cost = settled === undefined && isCost(reserved) ? reserved : statedCost(record);
  if (settled === 0 && cost === undefined) return REFUNDED;
  if (!isCost(reserved) || cost === undefined) return { problem: 'has no valid "cost"' };
  // Older versions of Weir did not log the kind.
  const known = kind ?? KINDS_BY_METHOD[method as keyof typeof KINDS_BY_METHOD];
  if (known !== 'read' && known !== 'write') return { problem: 'has no "kind"' };
  const id = typeof operation === 'string' ? operation : '';
  return { operation: logged.of(id, known, loggedAccess(record)), cost, reserved };
}

function loggedAccess({ personOnly, public: isPublic }: LogFields): Access {
  if (personOnly === true) return 'person';
  return isPublic === true ? 'public' : 'caller';
}

/** The program has stated the cost. The line has no method and path, so the document's operation is found by its id. */
function heldCost(
  record: LogFields,
  finder: OperationFinder | undefined,
  logged: LoggedOperations,
): CostReading {
  const read = loggedCost(record, logged);
  if (!('operation' in read)) return read;
  return { ...read, operation: finder?.named(read.operation.id) ?? read.operation };
}

function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && Number.isInteger(cost) && cost >= 1 && cost <= MAX_POINTS;
}

/** From this status on, a log does not show whether a cost of 0 was stated or refunded. */
const FIRST_FAILURE = 400;

/** The points that a response, or a program, has stated; undefined if none may have been stated. */
function statedCost({ settled, upstreamStatus }: LogFields): number | undefined {
  if (isCost(settled)) return settled;
  return settled === 0 && Number(upstreamStatus) < FIRST_FAILURE ? 0 : undefined;
}

const REFUNDED: CostReading = { problem: 'was refunded', skipped: 'uncharged' };

function newCost(record: LogFields, finder: OperationFinder): CostReading {
  const { method, path } = record;
  if (typeof method !== 'string' || typeof path !== 'string')
    return { problem: 'has no "method" and "path"' };
  const operation = finder.find(method, path);
  if (operation === undefined) return { problem: 'is not charged', skipped: 'uncharged' };
  const { settlement } = operation;
  if (wasUnsent(record) || wasRefunded(operation, record)) return REFUNDED;
  const reserved = reservedCost(operation, record);
  const rule = settlement?.settle;
  const stated = statedCost(record);
  // The operation's own cost is only what it would reserve.
  if (rule === undefined || stated === undefined) return { operation, cost: reserved };
  const keepsReservation = rule.kind === 'most' && rule.keepsReservation;
  return { operation, cost: keepsReservation ? Math.max(stated, reserved) : stated, reserved };
}

/** Statuses of requests that Weir refunds whatever `refundOn` says, because it has not sent them. 0: the client had left. */
const UNSENT_STATUS = new Set<unknown>([0, 408, 503]);

function wasUnsent({ settled, status, upstreamStatus }: LogFields): boolean {
  return settled === 0 && upstreamStatus === undefined && UNSENT_STATUS.has(status);
}

/** The 429 of a limit is no response that can be refunded: nothing was charged. */
function wasRefunded({ settlement }: Operation, { outcome, status }: LogFields): boolean {
  return settlement !== undefined && outcome !== 'denied' && isRefunded(settlement, Number(status));
}

/** A log has no bodies: what a request had reserved by its body, or what a program named, is taken from its line. */
function reservedCost({ settlement, cost }: Operation, { cost: logged, namedCost }: LogFields): number {
  if (!isCost(logged)) return cost;
  if (namedCost === true) return logged;
  return settlement?.reserve === undefined ? cost : Math.min(logged, settlement.reserve.most);
}

function entryOf(record: LogFields, read: CostReading): LogEntry | Skipped | Unreadable {
  if (!('operation' in read)) return read.skipped ?? read;
  const { operation, cost, reserved } = read;
  const { time, outcome, bucket, limits } = record;
  if (typeof time !== 'number' || !isLogTime(time * 1000)) return { problem: 'has no "time"' };
  const payer = operation.access === 'public' ? addressOf(record) : callerOf(record);
  if (typeof payer === 'string' || 'problem' in payer) return payer;
  return {
    atUs: chargedAtUs(record, time),
    loggedUs: time * 1000,
    operation,
    cost,
    reserved,
    ...(Array.isArray(limits) && { onlyLimits: limits.map(String) }),
    ...payer,
    wasRefused: outcome === 'denied',
    wasUncounted: outcome === 'uncounted',
    refusedBy: typeof bucket === 'string' ? bucket : undefined,
  };
}

function callerOf({
  account,
  organization,
  principal,
  organizationLimit,
  plan,
  address,
  outcome,
}: LogFields): PayerMembers | Skipped | Unreadable {
  // The operation was public when the line was written.
  if (account === undefined && (typeof address === 'string' || outcome === 'free')) return 'anonymous';
  if (typeof account !== 'string' || typeof principal !== 'string') {
    return { problem: 'has no "account" and "principal"' };
  }
  return {
    account,
    organization: typeof organization === 'string' ? organization : undefined,
    hasOrganizationLimit: organizationLimit !== false,
    principal,
    ...(typeof plan === 'string' && { plan }),
  };
}

/** Lines of operations that were not public then have no address. A free operation has only the client's. */
function addressOf({ address: charged, outcome, clientAddress }: LogFields): PayerMembers | Skipped {
  const address = outcome === 'free' ? clientAddress : charged;
  if (typeof address !== 'string') return 'anonymous';
  const network = networkOf(address) ?? address;
  return { account: '', organization: undefined, principal: '', address: network };
}

/** The time of the charge, or of the request's arrival if the line lacks it. */
function chargedAtUs({ chargedAtUs, totalMs }: LogFields, timeMs: number): number {
  if (typeof chargedAtUs === 'number' && isLogTime(chargedAtUs)) return chargedAtUs;
  return startOf(Math.round(timeMs * 1000), (typeof totalMs === 'number' ? totalMs : 0) * 1000);
}
