import type { RE2JS } from 're2js';
import { addressIn, networkOf } from '../../domain/network.ts';
import { MAX_POINTS } from '../../domain/settlement/settlement.ts';
import { KINDS_BY_METHOD } from '../../operations/listed-operation.ts';
import type { Operation } from '../../stages/request-context.ts';
import type { LogEntry, OperationFinder, PayerMembers, ReadLine, Skipped, Unreadable } from './entry.ts';
import { LoggedOperations } from './logged-operations.ts';
import { fieldAt, type LogFields, type MappedName, type Mapping } from './text-formats.ts';
import { startOf, timeUs } from './times.ts';

interface ForeignLog {
  readonly fieldsOf: (line: string) => LogFields | undefined;
  readonly mapping: Mapping;
  /** Finds the Account in the whole line, by its group `account` or its first group. */
  readonly accountPattern: RE2JS | undefined;
  /** Finds the costs of requests. Without it a request costs 1 point, or the cost in the log. */
  readonly finder: OperationFinder | undefined;
}

/** Requests with these statuses were not authorised, so they were not charged. */
const UNCHARGED_STATUS = new Set([401, 403]);

const REFUSED_STATUS = 429;

/** Reads the access log of another gateway, by a mapping of its fields. */
export function foreignLog(log: ForeignLog): ReadLine {
  const logged = new LoggedOperations();
  return (line) => {
    const fields = log.fieldsOf(line);
    return fields === undefined
      ? { problem: 'is not a line of this format' }
      : readFields(log, line, fields, logged);
  };
}

function readFields(
  log: ForeignLog,
  line: string,
  fields: LogFields,
  logged: LoggedOperations,
): LogEntry | Skipped | Unreadable {
  const { mapping } = log;
  const text = (name: MappedName) => textOf(fieldAt(fields, mapping[name]));
  const loggedUs = timeUs(fieldAt(fields, mapping.time));
  if (loggedUs === undefined) return { problem: `has no time at ${shownPath(mapping.time)}` };
  const method = text('method');
  if (method === undefined) return { problem: `has no method at ${shownPath(mapping.method)}` };
  const status = Number(text('status'));
  if (UNCHARGED_STATUS.has(status)) return 'uncharged';
  const operation = operationOf(log, method, text('path') ?? '/', logged);
  if (operation === undefined) return 'uncharged';
  const cost = log.finder === undefined ? pointsIn(text('cost')) : operation.cost;
  if (cost === undefined) return { problem: `has no whole number of points at ${shownPath(mapping.cost)}` };
  if (cost === 0) return 'uncharged';
  const account = log.accountPattern === undefined ? text('account') : matched(log.accountPattern, line);
  const payer = operation.access === 'public' ? addressOf(text('address')) : callerOf(account, text);
  if (payer === undefined) return 'anonymous';
  return {
    atUs: startOf(loggedUs, durationUs(text('durationMs'), text('durationSeconds'))),
    loggedUs,
    operation,
    cost,
    ...payer,
    wasRefused: status === REFUSED_STATUS,
    refusedBy: undefined,
  };
}

function callerOf(
  account: string | undefined,
  text: (name: MappedName) => string | undefined,
): PayerMembers | undefined {
  if (account === undefined) return undefined;
  return { account, organization: text('organization'), principal: text('principal') ?? account };
}

function addressOf(text: string | undefined): PayerMembers | undefined {
  // A load balancer of AWS adds the port.
  const address = text === undefined ? undefined : networkOf(addressIn(text) ?? text);
  return address === undefined ? undefined : { account: '', organization: undefined, principal: '', address };
}

/** In many logs, `-` and the empty text mean that there is no value. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value !== '-' ? value : undefined;
}

function matched(pattern: RE2JS, line: string): string | undefined {
  const match = pattern.matcher(line);
  if (!match.find()) return undefined;
  return textOf(match.group(pattern.namedGroups().account ?? 1) ?? match.group(1));
}

function durationUs(ms: string | undefined, seconds: string | undefined): number {
  return ms === undefined ? Number(seconds ?? 0) * 1e6 : Number(ms) * 1e3;
}

function operationOf(
  log: ForeignLog,
  method: string,
  target: string,
  logged: LoggedOperations,
): Operation | undefined {
  if (log.finder !== undefined) return log.finder.find(method, targetOf(target));
  if (!Object.hasOwn(KINDS_BY_METHOD, method)) return undefined;
  return logged.of(method, KINDS_BY_METHOD[method as keyof typeof KINDS_BY_METHOD], 'caller');
}

/** A request without a cost is 1 point. Undefined for a cost that no request can have. */
function pointsIn(text: string | undefined): number | undefined {
  const points = Number(text ?? 1);
  return Number.isInteger(points) && points >= 0 && points <= MAX_POINTS ? points : undefined;
}

/** A load balancer logs the whole URL, a gateway its path and query. */
function targetOf(target: string): string {
  return target.replace(/^https?:\/\/[^/?]+/, '') || '/';
}

function shownPath(path: readonly string[] | undefined): string {
  return path === undefined ? 'any field: map one' : `.${path.join('.')}`;
}
