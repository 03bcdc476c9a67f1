import { LATEST_MS } from '../../domain/clock.ts';
import { writtenDuration } from '../../domain/duration.ts';
import { type PeriodRule, shownRule } from '../../domain/limits/calendar.ts';
import type { GivenLimit, Limits, Overrides } from '../../domain/limits/limits.ts';
import { furtherRows, type LimitRow, largestLimitOf } from '../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS, type OverrideSection, scopeNamed } from '../../domain/limits/scopes.ts';
import { counted, shownCount, shownShare } from '../../domain/shown.ts';
import { replayedRows } from '../payers.ts';
import { daysFor, daysPerSpan } from './days.ts';
import type { Aim, SuggestedLimit, Suggestion } from './search.ts';

export interface LimitsText extends Aim {
  readonly suggestion: Suggestion;
  /** The limits to start from: the defaults, and overrides for Accounts and others that the log does not have. */
  readonly base: Limits;
  /** The source of the base, such as a file name. */
  readonly baseName: string;
  readonly requests: number;
  /** Further notes, one sentence per line. */
  readonly remarks: readonly string[];
}

/** A complete limits.yaml. A comment beside each limit states what it is based on. */
export function limitsYaml(text: LimitsText): string {
  const { base, suggestion, mostRefused, confidence, requests } = text;
  const contract = base.rows.filter(({ isContract }) => isContract);
  const further = furtherRows(base.rows);
  return [
    ...text.remarks.map((remark) => `# ${remark}`),
    `# Each limit is the smallest found with which its bucket alone would have refused at most ${shownShare(mostRefused)} of its requests;`,
    `# all limits of this file together, the kept ones included, would have refused ${shownCount(suggestion.refused)} of ${counted(requests, 'request')} (${shownShare(requests === 0 ? 0 : suggestion.refused / requests)}).`,
    ...(confidence === 0 ? [] : confidenceLines(suggestion, confidence)),
    `windowSeconds: ${base.windowSeconds}`,
    'defaults:',
    ...contract.map((row) =>
      line(`  ${row.name}: ${limitText(base.defaults[row.name])}`, defaultComment(row, text)),
    ),
    ...(further.length === 0 ? [] : ['limits:']),
    ...further.map((row) => line(`  ${row.name}: ${rowText(row, base)}`, defaultComment(row, text))),
    ...planLines(base),
    ...OVERRIDE_SECTIONS.flatMap((section) => sectionLines(section, text)),
    '',
  ].join('\n');
}

function confidenceLines({ limits }: Suggestion, confidence: number): readonly string[] {
  const meaning =
    '# "Confidence" is how likely a limit is to refuse no larger share on another day, if days stay as they were in this log.';
  if (!limits.some((limit) => limit.confidence < confidence)) return [meaning];
  const needed = `${shownShare(confidence)} confidence takes ${counted(daysFor(confidence), 'day')} with requests of the bucket`;
  return [meaning, `# ${needed}. Fewer days, n, give n / (n + 1), and less than a day gives none.`];
}

function defaultComment(row: LimitRow, { base, baseName, suggestion }: LimitsText): string {
  const { name, scope } = row;
  const kept = base.unwritten.includes(name) ? "Weir's default" : `kept from ${baseName}`;
  const { many: noun } = scopeNamed(scope);
  if (noun === undefined || replayedRows([row]).length === 0) return kept;
  const needed = suggestion.limits.filter(({ stats }) => stats.name === name).map(({ limit }) => limit);
  if (needed.length === 0) return `${kept}; no request in this log`;
  // There may be a million: too many for the parameters of a call.
  const most = needed.reduce((one, other) => Math.max(one, other));
  return `${kept}; of ${counted(needed.length, noun)} the busiest needs ${shownCount(most)}`;
}

function sectionLines(section: OverrideSection, text: LimitsText): readonly string[] {
  const { base, suggestion } = text;
  const given = base[section];
  const byId = new Map<string, Map<string, SuggestedLimit>>();
  for (const id of given.keys()) byId.set(id, new Map());
  for (const one of suggestion.limits) {
    const { stats } = one;
    const { scope } = stats.row;
    if (scopeNamed(scope).overrides !== section || !isForEachOwner(stats.row)) continue;
    const buckets = byId.get(stats.id) ?? new Map<string, SuggestedLimit>();
    byId.set(stats.id, buckets.set(stats.name, one));
  }
  if (byId.size === 0) return [];
  const ids = [...byId.keys()].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  return [
    `${section}:`,
    ...ids.flatMap((id) => {
      const lines = overrideLines(text, given.get(id), byId.get(id) ?? new Map());
      return lines.length === 0 ? [`  ${yamlKey(id)}: {}`] : [`  ${yamlKey(id)}:`, ...lines];
    }),
  ];
}

function overrideLines(
  { base: { rows }, baseName, mostRefused }: LimitsText,
  base: Overrides | undefined,
  suggested: ReadonlyMap<string, SuggestedLimit>,
): readonly string[] {
  const kept = `kept from ${baseName}`;
  const endMs = endOfEntry(base, suggested);
  const lines = rows.flatMap((row) => {
    const { name: bucket } = row;
    const one = suggested.get(bucket);
    if (one !== undefined) {
      const shadow = one.stats.shadowLimit !== undefined;
      const limit = limitText({ limit: one.limit, shadow }, endMs);
      return [line(`    ${bucket}: ${limit}`, suggestedComment(one, mostRefused))];
    }
    const given = base?.limits[bucket];
    if (given === undefined) return [];
    const comment = isSuggestedByOwner(row) ? `no request in this log; ${kept}` : kept;
    return [line(`    ${bucket}: ${keptText(row, given, endMs)}`, comment)];
  });
  const plan = base?.plan?.name;
  const start = base?.periodStartsOn;
  return [
    ...(plan === undefined ? [] : [line(`    plan: ${yamlKey(plan)}`, kept)]),
    ...(endMs === undefined
      ? []
      : [line(`    until: "${dateText(endMs)}"`, `${kept}; a limit with its own until outlasts it`)]),
    ...(start === undefined ? [] : [line(`    periodStartsOn: ${start}`, kept)]),
    ...lines,
  ];
}

/** Whether each owner with requests gets a limit of its own. Of other limits, the log may have requests all the same. */
function isSuggestedByOwner(row: LimitRow): boolean {
  return isForEachOwner(row) && replayedRows([row]).length > 0;
}

/** Whether a file of suggestions has a limit for each owner. Of the others there are too many: their limit is kept. */
export function isForEachOwner({ scope }: LimitRow): boolean {
  return scopeNamed(scope).many === undefined;
}

/** Until when the whole entry is valid, unless a limit of it has its own end. A plan cannot have one, and neither can `none`. */
function endOfEntry(
  base: Overrides | undefined,
  suggested: ReadonlyMap<string, SuggestedLimit>,
): number | undefined {
  if (base?.plan !== undefined) return base.plan.untilMs;
  const kept = Object.entries(base?.limits ?? {}).filter(([bucket]) => !suggested.has(bucket));
  return kept.find(([, { limit }]) => limit === 'none')?.[1].untilMs;
}

/** Where `none` would need its own end, it is the highest limit instead: beside a plan of `--plan`, which does not end. */
function keptText(row: LimitRow, given: GivenLimit, endMs: number | undefined): string {
  const isOther = given.limit === 'none' && given.untilMs !== endMs;
  return limitText(isOther ? { ...given, limit: largestLimitOf(row) } : given, endMs);
}

function suggestedComment({ stats, refused, days, confidence }: SuggestedLimit, mostRefused: number): string {
  const { requests, fullestWindow, windows } = stats;
  const refuses = stats.shadowLimit === undefined ? 'refuses' : 'would refuse';
  const refusedText = `${refuses} ${shownCount(refused)} (${shownShare(refused / requests)})`;
  const p999 = shownCount(windows.quantile(0.999));
  const inLog = `${counted(requests, 'request')}, fullest window ${shownCount(fullestWindow)}, p99.9 ${p999}: ${refusedText}`;
  if (confidence === 0) return inLog;
  const span = daysPerSpan(stats.row);
  const another = span === 1 ? 'on another day' : `in another ${span} days`;
  const seen = span === 1 ? counted(days, 'day') : `${days} times ${span} days`;
  const likely = `${another} at most ${shownShare(mostRefused)} with ${shownShare(confidence)} confidence`;
  return `${inLog}, ${likely} (${seen})`;
}

/** Column of the comments, if the line is shorter. */
const COMMENT_COLUMN = 32;

function line(setting: string, comment: string): string {
  return `${setting.padEnd(COMMENT_COLUMN)} # ${comment}`;
}

/** A further limit, as the limits file has it. */
function rowText(
  { name, scope, counts, windowSeconds, period, selection, durable }: LimitRow,
  { defaults }: Limits,
): string {
  const { limit = 'none', shadow = false } = defaults[name] ?? {};
  const parts = [`per: ${scope}`, `${counts}: ${limit}`];
  if (period !== undefined) parts.push(...periodParts(period));
  else if (windowSeconds > 0) parts.push(`window: ${writtenDuration(windowSeconds)}`);
  for (const [key, value] of Object.entries(selection)) parts.push(`${key}: ${JSON.stringify(value)}`);
  if (durable === false) parts.push('durable: false');
  return `{ ${parts.join(', ')}${shadow ? ', shadow: true' : ''} }`;
}

function periodParts(rule: PeriodRule): string[] {
  const { unit, ...others } = shownRule(rule);
  return [`period: ${unit}`, ...Object.entries(others).map(([key, value]) => `${key}: ${value}`)];
}

function planLines({ plans }: Limits): readonly string[] {
  if (plans.size === 0) return [];
  return [
    'plans:',
    ...[...plans].map(([name, limits]) => {
      const given = Object.entries(limits).map(([row, limit]) => `${row}: ${limitText(limit)}`);
      return `  ${yamlKey(name)}: { ${given.join(', ')} }`;
    }),
  ];
}

/** @param endMs the end of the entry that the limit is in, if it has one */
function limitText(given: GivenLimit | undefined, endMs?: number): string {
  if (given === undefined) return 'none';
  const { limit, shadow, untilMs } = given;
  const endsWithEntry = untilMs === endMs;
  if (!shadow && endsWithEntry) return String(limit);
  const parts = [`limit: ${limit}`, ...(shadow ? ['shadow: true'] : [])];
  if (!endsWithEntry) parts.push(`until: "${dateText(untilMs ?? LATEST_MS)}"`);
  return `{ ${parts.join(', ')} }`;
}

function dateText(ms: number): string {
  return ms >= LATEST_MS ? '9999-12-31' : new Date(ms).toISOString();
}

/** Words that YAML 1.1 or 1.2 does not parse as text. */
const NOT_TEXT = /^(true|false|null|yes|no|on|off|y|n)$/i;

function yamlKey(id: string): string {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(id) && !NOT_TEXT.test(id) ? id : JSON.stringify(id);
}
