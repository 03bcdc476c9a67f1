import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Caller } from '../../domain/caller.ts';
import { unixUs } from '../../domain/clock.ts';
import { printableJson } from '../../domain/printable.ts';
import { shownDigest } from '../../facts/revocation-message.ts';
import type { RevokedToken } from '../../facts/revocations.ts';
import {
  type Charged,
  costAtAdmission,
  payingAccess,
  type RequestContext,
  reasonOf,
} from '../../stages/request-context.ts';
import { traceIdOf } from './traceparent.ts';

/** Takes whole lines. */
export interface LineOutput {
  write(line: string): void;
}

/** pino's number for `info`. */
const LEVEL = 30;

/** Strings that are JSON as they are, between quotation marks: printable ASCII without `"` and `\`. */
const NEEDS_NO_ESCAPE = /^[ !#-[\]-~]*$/;

/**
 * Writes one line for each request, with what was charged and why; never a token, a query or a body. The line is written
 * when the response has ended; `chargedAtUs` is the Unix time at which the store was asked. `weir replay` reads these
 * lines: docs/access-log.md lists the members that it relies on.
 *
 * The text is what pino would write, without building an object first, which cost about 31 µs of CPU per request.
 */
export class AccessLog {
  readonly #log: Logger;
  readonly #output: LineOutput;
  /** The same in every line. */
  readonly #process: string;
  /** How the lines of this millisecond begin. */
  #beginning = '';
  #beginningMs = 0;

  /**
   * @param log decides whether lines of level `info` are written
   * @param output where `log` writes
   * @param fields further members of every line
   */
  constructor(log: Logger, output: LineOutput, fields: Readonly<Record<string, string>> = {}) {
    this.#log = log;
    this.#output = output;
    this.#process = printableJson(
      JSON.stringify({ pid: process.pid, hostname: hostname(), ...fields }).slice(1, -1),
    );
  }

  /** @param nowMs when the response ended, by `performance.now()` */
  write(context: RequestContext, status: number, totalMs: number, nowMs = performance.now()): void {
    if (!this.#log.isLevelEnabled('info')) return;
    const { requestId, traceparent, clientAddress, method, protocol } = context;
    const wallMs = Date.now();
    const chargedAt = chargedAtMember(context, nowMs, wallMs);
    let line = `${this.#beginningAt(wallMs)}${escaped(requestId)}","traceId":"${traceIdOf(traceparent)}`;
    line += `","clientAddress":"${escaped(clientAddress)}","method":"${escaped(method)}"`;
    if (protocol !== undefined) line += `,"decision":"${protocol}"${askedMembers(context)}`;
    line += requestMembers(context) + chargedAt + chargeMembers(context);
    line += `,"status":${status}${isIncomplete(context, status) ? ',"incomplete":true' : ''}`;
    line += `${upstreamMembers(context)},"totalMs":${msText(totalMs)},"msg":"request"}\n`;
    this.#output.write(line);
  }

  #beginningAt(wallMs: number): string {
    if (wallMs !== this.#beginningMs) {
      this.#beginningMs = wallMs;
      this.#beginning = `{"level":${LEVEL},"time":${wallMs},${this.#process},"requestId":"`;
    }
    return this.#beginning;
  }
}

/** Whether the client got a part of the response. What follows a 101 is no response, and a proxy's connection is not its client's. */
function isIncomplete({ source, protocol }: RequestContext, status: number): boolean {
  return source.isAnswered === false && status !== 0 && status !== 101 && protocol === undefined;
}

/** What a program named itself. */
function askedMembers({ operation, source: { askedCost, askedLimits } }: RequestContext): string {
  if (operation === undefined) return '';
  const named = askedCost === undefined ? '' : ',"namedCost":true';
  return askedLimits === undefined
    ? named
    : `${named},"limits":${printableJson(JSON.stringify(askedLimits))}`;
}

const ACCESS_MEMBERS = { caller: '', person: ',"personOnly":true', public: ',"public":true' } as const;

function requestMembers(context: RequestContext): string {
  const { source, target, operation, caller, publicClient, revokedToken, settledCost, unsettled } = context;
  let members = '';
  if (target !== undefined) members += `,"path":"${escaped(target.path)}"`;
  if (operation !== undefined) members += `,"operation":"${escaped(operation.id)}"`;
  if (revokedToken !== undefined) members += revokedMembers(revokedToken);
  if (caller !== undefined) members += callerMembers(caller);
  if (publicClient !== undefined) members += `,"address":"${escaped(publicClient.address)}"`;
  if (operation === undefined) return members;
  members += `,"kind":"${operation.kind}","cost":${costAtAdmission(context)}`;
  if (source.heldMs !== undefined) members += `,"heldMs":${source.heldMs}`;
  if (settledCost !== undefined) members += `,"settled":${settledCost}`;
  if (unsettled !== undefined) members += `,"unsettled":"${unsettled}"`;
  return members + ACCESS_MEMBERS[payingAccess(operation)];
}

function callerMembers({ account, organization, hasOrganizationLimit, principal }: Caller): string {
  let members = `,"account":"${escaped(account)}"`;
  if (organization !== undefined) {
    members += `,"organization":"${escaped(organization)}"`;
    if (!hasOrganizationLimit) members += ',"organizationLimit":false';
  }
  return `${members},"principal":"${escaped(principal.id)}"`;
}

/** By the digest, the requests of one token are found without the token. */
function revokedMembers({ digestHex, by: { revoked } }: RevokedToken): string {
  const principal = revoked.kind === 'principal' ? `,"principal":"${escaped(revoked.id)}"` : '';
  return `${principal},"token":"${shownDigest(digestHex)}","revoked":"${revoked.kind}"`;
}

function chargedAtMember({ chargeAskedMs }: RequestContext, nowMs: number, wallMs: number): string {
  if (chargeAskedMs === undefined) return '';
  return `,"chargedAtUs":${unixUsText(unixUs(chargeAskedMs, nowMs, wallMs))}`;
}

function chargeMembers(context: RequestContext): string {
  const { charged, refusal } = context;
  let members = `,"outcome":"${charged?.outcome ?? (refusal === undefined ? 'free' : 'refused')}"`;
  const reason = reasonOf(context);
  if (reason !== undefined) members += `,"reason":"${reason}"`;
  if (charged === undefined) return members;
  if (charged.plan !== undefined) members += `,"plan":"${escaped(charged.plan)}"`;
  return members + bucketMembers(charged);
}

function bucketMembers(charged: Charged): string {
  if (charged.outcome === 'denied') {
    const { bucket, limit, windowSeconds, remaining, retryAfterUs, degraded } = charged;
    const left = `"remaining":${remaining},"retryAfterMs":${msText(retryAfterUs / 1000)}`;
    const mode = degraded === undefined ? '' : `,"degraded":"${degraded}"`;
    return `,"bucket":"${escaped(bucket)}","limit":${limit},"windowSeconds":${windowSeconds},${left}${mode}`;
  }
  if (charged.outcome === 'uncounted' || charged.shadowDenied === undefined) return '';
  return `,"shadowDenied":${JSON.stringify(charged.shadowDenied)}`;
}

function upstreamMembers(context: RequestContext): string {
  const { upstreamStatus, upstreamError, upstreamErrorDetail, chargeMs, queuedMs, upstreamMs } = context;
  let members = upstreamStatus === undefined ? '' : `,"upstreamStatus":${upstreamStatus}`;
  if (upstreamError !== undefined) members += `,"upstreamError":"${escaped(upstreamError)}"`;
  if (upstreamErrorDetail !== undefined)
    members += `,"upstreamErrorDetail":"${escaped(upstreamErrorDetail)}"`;
  if (chargeMs !== undefined) members += `,"chargeMs":${msText(chargeMs)}`;
  if (queuedMs !== undefined) members += `,"queuedMs":${msText(queuedMs)}`;
  return upstreamMs === undefined ? members : `${members},"upstreamMs":${msText(upstreamMs)}`;
}

/** A text as it stands between quotation marks. */
function escaped(text: string): string {
  return NEEDS_NO_ESCAPE.test(text) ? text : printableJson(JSON.stringify(text)).slice(1, -1);
}

/*
 * Times as JSON has them. V8 takes 0.2 µs to write a number with a fraction or with 16 digits. Small integers and tables take a tenth
 * of this.
 */

/** `.5`, `.25` and so on, by thousandths; empty for none. */
const FRACTIONS = Array.from({ length: 1_000 }, (_, thousandths) => `${thousandths / 1_000}`.slice(1));

const PADDED = Array.from({ length: 1_000 }, (_, number) => `${number}`.padStart(3, '0'));

/** Above this, the ordinary way is taken. */
const MAX_US = 1_000_000_000;

/** Milliseconds, rounded to microseconds. */
export function msText(ms: number): string {
  const us = Math.round(ms * 1_000);
  if (!(us >= 0 && us < MAX_US)) return `${us / 1_000}`;
  const whole = Math.floor(us / 1_000);
  return `${whole}${FRACTIONS[us - whole * 1_000]}`;
}

let second = { number: 0, text: '0' };

/** A whole number of microseconds since 1970. */
export function unixUsText(us: number): string {
  const number = Math.floor(us / 1_000_000);
  if (number !== second.number) second = { number, text: `${number}` };
  const rest = us - number * 1_000_000;
  const thousands = Math.floor(rest / 1_000);
  return `${second.text}${PADDED[thousands]}${PADDED[rest - thousands * 1_000]}`;
}
