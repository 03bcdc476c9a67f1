import {
  BUCKETS,
  type BucketDefinition,
  OVERRIDE_SECTIONS,
  type OverrideSection,
  type ScopeName,
} from '../../domain/buckets.ts';
import type { GivenLimit, Limits, Overrides } from '../../domain/limits.ts';
import { counted, shownCount, shownShare } from '../shown.ts';
import type { SuggestedLimit, Suggestion } from './search.ts';

export interface LimitsText {
  readonly suggestion: Suggestion;
  /** The limits to start from: the defaults, and overrides for Accounts and others that the log does not have. */
  readonly base: Limits;
  /** The source of the base, such as a file name. */
  readonly baseName: string;
  readonly mostRefused: number;
  readonly requests: number;
  /** Further notes, one sentence per line. */
  readonly remarks: readonly string[];
}

/** A complete limits.yaml. A comment beside each limit states what it is based on. */
export function limitsYaml(text: LimitsText): string {
  const { base, suggestion, mostRefused, requests } = text;
  return [
    ...text.remarks.map((remark) => `# ${remark}`),
    `# Each limit is the smallest found with which its bucket alone would have refused at most ${shownShare(mostRefused)} of its requests;`,
    `# all of them together would have refused ${shownCount(suggestion.refused)} of ${counted(requests, 'request')} (${shownShare(requests === 0 ? 0 : suggestion.refused / requests)}).`,
    `windowSeconds: ${base.windowSeconds}`,
    'defaults:',
    ...BUCKETS.map((bucket) =>
      line(`  ${bucket.name}: ${limitText(base.defaults[bucket.name])}`, defaultComment(bucket, text)),
    ),
    ...OVERRIDE_SECTIONS.flatMap((section) => sectionLines(section, text)),
    '',
  ].join('\n');
}

/** Scopes without suggested overrides: Persons cannot have any, and one for each address of a log would be of no use. */
const NAMED_BY_DEFAULT: Readonly<Partial<Record<ScopeName, string>>> = {
  person: 'Person',
  address: 'client',
};

function defaultComment({ name, scopeName }: BucketDefinition, { baseName, suggestion }: LimitsText): string {
  const kept = `kept from ${baseName}`;
  const noun = NAMED_BY_DEFAULT[scopeName];
  if (noun === undefined) return kept;
  const needed = suggestion.limits.filter(({ stats }) => stats.name === name).map(({ limit }) => limit);
  if (needed.length === 0) return `${kept}; no request in this log`;
  return `${kept}; of ${counted(needed.length, noun)} the busiest needs ${shownCount(Math.max(...needed))}`;
}

function sectionLines(
  section: OverrideSection,
  { base, suggestion, baseName }: LimitsText,
): readonly string[] {
  const given = base[section];
  const byId = new Map<string, Map<string, SuggestedLimit>>();
  for (const id of given.keys()) byId.set(id, new Map());
  for (const one of suggestion.limits) {
    const { stats } = one;
    if (stats.bucket.scope.overrides !== section || stats.bucket.scopeName in NAMED_BY_DEFAULT) continue;
    const buckets = byId.get(stats.id) ?? new Map<string, SuggestedLimit>();
    byId.set(stats.id, buckets.set(stats.name, one));
  }
  if (byId.size === 0) return [];
  const ids = [...byId.keys()].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  return [
    `${section}:`,
    ...ids.flatMap((id) => [
      `  ${yamlKey(id)}:`,
      ...overrideLines(section, given.get(id) ?? {}, byId.get(id) ?? new Map(), baseName),
    ]),
  ];
}

function overrideLines(
  section: OverrideSection,
  base: Overrides,
  suggested: ReadonlyMap<string, SuggestedLimit>,
  baseName: string,
): readonly string[] {
  return BUCKETS.filter(({ scope }) => scope.overrides === section).flatMap(({ name: bucket }) => {
    const one = suggested.get(bucket);
    if (one !== undefined) return [line(`    ${bucket}: ${one.limit}`, suggestedComment(one))];
    const given = base[bucket];
    if (given === undefined) return [];
    return [line(`    ${bucket}: ${limitText(given)}`, `no request in this log; kept from ${baseName}`)];
  });
}

function suggestedComment({ stats, refused }: SuggestedLimit): string {
  const { requests, fullestWindow, windows } = stats;
  const refusedText = `refuses ${shownCount(refused)} (${shownShare(refused / requests)})`;
  const p999 = shownCount(windows.quantile(0.999));
  return `${counted(requests, 'request')}, fullest window ${shownCount(fullestWindow)}, p99.9 ${p999}: ${refusedText}`;
}

/** Column of the comments, if the line is shorter. */
const COMMENT_COLUMN = 32;

function line(setting: string, comment: string): string {
  return `${setting.padEnd(COMMENT_COLUMN)} # ${comment}`;
}

function limitText({ limit, shadow, untilMs }: GivenLimit): string {
  if (!shadow && untilMs === undefined) return String(limit);
  const parts = [`limit: ${limit}`, ...(shadow ? ['shadow: true'] : [])];
  if (untilMs !== undefined) parts.push(`until: "${new Date(untilMs).toISOString()}"`);
  return `{ ${parts.join(', ')} }`;
}

/** Words that YAML 1.1 or 1.2 does not parse as text. */
const NOT_TEXT = /^(true|false|null|yes|no|on|off|y|n)$/i;

function yamlKey(id: string): string {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(id) && !NOT_TEXT.test(id) ? id : JSON.stringify(id);
}
