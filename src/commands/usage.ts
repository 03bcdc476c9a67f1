import type { FindResult } from '../admin/find/finder.ts';
import type { BucketUsage, Usage } from '../admin/usage/owner-usage.ts';
import { inFlightText, unseenText } from '../console/format.ts';
import { exactDuration, roundedDuration } from '../domain/duration.ts';
import { unitOf } from '../domain/limits/rows.ts';
import { isScopeName, SCOPE_NAMES, SCOPES, type ScopeName } from '../domain/limits/scopes.ts';
import { looksLikeAddress } from '../domain/network.ts';
import { CommandError } from '../process/failure.ts';
import { isFindResult, isUsage } from './admin-answers.ts';
import { AdminRefusal, askAdmin } from './admin-client.ts';
import { textOf } from './limit/limit.ts';
import { pastUsage, type UsageOptions } from './past-usage.ts';
import { print, printJson } from './print.ts';
import { type Line, tableLines } from './terminal/line.ts';

/** `weir usage`: the limits of an Account, Organization, Person or address, what it has used, and its recent operations. */
export async function usage(id: string, options: UsageOptions): Promise<void> {
  const { scope, json = false, csv = false, period } = options;
  if (scope !== undefined && !isScopeName(scope))
    throw new CommandError(`--scope takes ${SCOPE_NAMES.join(', ')}.`);
  if (csv && json) throw new CommandError('--csv and --json cannot be combined.');
  if (period !== undefined) {
    const fitting = SCOPE_NAMES.filter((one) => (one === 'address') === looksLikeAddress(id));
    await pastUsage(scope === undefined ? fitting : [scope], id, period, options);
    return;
  }
  const needing = ofPeriod(options);
  if (needing !== undefined) throw new CommandError(`${needing} takes a --period, such as --period 2026-11.`);
  const answer = await (scope === undefined ? usageOfId(id, options) : usageOf(scope, id, options));
  if (json) printJson(answer);
  else print(...linesOf(answer));
}

/** The first option that only belongs to a past period. */
function ofPeriod({ csv, timeZone, startsOn }: UsageOptions): string | undefined {
  if (csv === true) return '--csv';
  if (timeZone !== undefined) return '--time-zone';
  return startsOn === undefined ? undefined : '--starts-on';
}

async function usageOf(
  scope: ScopeName,
  id: string,
  { organization, account, ...options }: UsageOptions,
): Promise<Usage> {
  const hints = new URLSearchParams({ ...(organization && { organization }), ...(account && { account }) });
  const query = hints.size === 0 ? '' : `?${hints}`;
  const path = `/usage/${SCOPES[scope].plural}/${encodeURIComponent(id)}${query}`;
  return (await askAdmin(options, path, isUsage)) as Usage;
}

/** The usage of an Account or an address, or else of the Organization or principal that has the id. */
async function usageOfId(id: string, options: UsageOptions): Promise<Usage> {
  try {
    return await usageOf(looksLikeAddress(id) ? 'address' : 'account', id, options);
  } catch (error) {
    if (!(error instanceof AdminRefusal) || error.status !== 404) throw error;
    const { found } = (await askAdmin(
      options,
      `/find?q=${encodeURIComponent(id)}`,
      isFindResult,
    )) as FindResult;
    if (found.some(({ kind }) => kind === 'organization')) return usageOf('organization', id, options);
    const principal = found.find(({ kind }) => kind === 'principal');
    if (principal) return usageOf(principal.isPerson ? 'person' : 'service', id, options);
    throw error;
  }
}

function linesOf({
  scope,
  id,
  organization,
  isKnown,
  plan,
  asOf,
  storeProblem,
  blocks,
  buckets,
  recent,
  operations,
  accounts = [],
  replicas,
  ofReplicas,
}: Usage): readonly Line[] {
  const ofOrganization = organization === null ? '' : ` of organization ${organization}`;
  const title = `${scope} ${id}${ofOrganization}${plan === null ? '' : `, plan ${plan}`}`;
  const problem =
    storeProblem === null ? [] : [`The store could not be read: ${storeProblem}. What is used is unknown.`];
  const windows = Object.entries(recent).map(([window, counts]) => [window, ...cellsOf(counts)]);
  const members = accounts.map((counts) => [counts.id, ...cellsOf(counts)]);
  const spenders = operations.map((counts) => [counts.operation, ...cellsOf(counts)]);
  return [
    title,
    // Replicas of 0.3.0 do not say.
    ...(isKnown === false ? [unseenText(scope)] : []),
    ...problem,
    ...blocks.map((block): Line => [{ style: 'red', text: textOf(block) }]),
    '',
    ...(buckets.length === 0
      ? [
          `No limit counts this ${SCOPES[scope].noun} alone. Its requests are charged to the Accounts that they are for.`,
        ]
      : tableLines([BUCKET_COLUMNS, ...buckets.map(bucketRow)])),
    ...buckets.flatMap(inFlightLines),
    '',
    ...(windows.length === 0 ? [] : [...tableLines([['last', ...COUNT_COLUMNS], ...windows]), '']),
    ...(members.length === 0
      ? []
      : [...tableLines([['Account, last 5 to 10 minutes', ...COUNT_COLUMNS], ...members]), '']),
    ...(windows.length === 0
      ? []
      : [...tableLines([['operation, last 5 to 10 minutes', ...COUNT_COLUMNS], ...spenders]), '']),
    `As of ${asOf}. Buckets count all replicas; the other figures are from ${reportedText(replicas, ofReplicas)}.`,
  ];
}

const COUNT_COLUMNS = ['points', 'requests', 'refused'];

const BUCKET_COLUMNS = ['bucket', 'limit', 'used', 'left', 'next points in', 'full in', 'limit set by'];

function reportedText(replicas: number, ofReplicas: number | null): string {
  if (replicas === ofReplicas) return replicas === 1 ? 'the only replica' : `all ${replicas} replicas`;
  return ofReplicas === null ? 'the replica that answered' : `${replicas} of ${ofReplicas} replicas`;
}

function cellsOf(counts: { readonly points: number; readonly requests: number; readonly refused: number }) {
  return [counts.points, counts.requests, counts.refused].map(String);
}

function bucketRow(bucket: BucketUsage): readonly string[] {
  const { limit, counts, used, remaining, nextPointsAfterSeconds, resetAfterSeconds } = bucket;
  // A period ends even if nothing was used in it.
  const fullAfterSeconds = used === 0 ? 0 : resetAfterSeconds;
  return [
    bucket.bucket,
    `${limit}${counts === 'points' ? '' : ` ${unitOf(counts)}`}${windowText(bucket)}`,
    shown(used),
    shown(remaining),
    ...(counts === 'concurrent' ? ['–', '–'] : [nextPointsAfterSeconds, fullAfterSeconds].map(waitText)),
    sourceOf(bucket),
  ];
}

/** Where the requests of a limit on concurrent requests are in flight. */
function inFlightLines({ bucket, inFlight, byReplica }: BucketUsage): readonly string[] {
  return inFlight ? [`${bucket}: ${inFlightText(inFlight, byReplica ?? [])}`] : [];
}

function shown(value: number | null): string {
  return value === null ? '?' : `${value}`;
}

/** ` in 30 days`, or ` per month`; nothing for concurrent requests. */
export function windowText({
  windowSeconds,
  period,
}: {
  readonly windowSeconds: number;
  readonly period?: { readonly unit: string };
}): string {
  if (period !== undefined) return ` per ${period.unit}`;
  return windowSeconds === 0 ? '' : ` in ${exactDuration(windowSeconds)}`;
}

function waitText(seconds: number | null): string {
  return seconds === null ? '?' : roundedDuration(seconds, Math.ceil);
}

function sourceOf({ source, plan, writtenAt, shadow, until, why, by }: BucketUsage): string {
  const parts: string[] = [plan === null ? source : `${source} ${plan}`];
  if (shadow) parts.push('shadow: refuses nothing');
  if (until !== null) parts.push(`until ${until}`);
  if (by !== null) parts.push(`by ${by}: ${why}`);
  if (writtenAt !== null) parts.push(writtenAt);
  return parts.join(', ');
}
