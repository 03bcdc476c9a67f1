import { parseOverrides } from '../../config/files/limits/parse-limits.ts';
import { formatPath, type Problem, problemsOf } from '../../config/problem.ts';
import { maskUrl } from '../../config/reader/mask.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { didYouMean } from '../../config/reader/value-messages.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import {
  CONTRACT_ROWS,
  type ContractRow,
  type LimitRow,
  largestLimitOf,
  unitOf,
} from '../../domain/limits/rows.ts';
import { type OverrideSection, scopeNamed } from '../../domain/limits/scopes.ts';
import { networkOf } from '../../domain/network.ts';
import { LONGEST_MS } from '../../facts/operator-facts.ts';
import { ActionRefused, notAnAddress, readDuration, readForce, readReason } from '../action.ts';
import { type FactRequest, membersOf } from './fact-api.ts';

/** The owner of a limit: a section of the limits file, and an id. */
export interface LimitOwner {
  readonly section: OverrideSection;
  readonly id: string;
}

/** An owner as limits are stored for it: an address stands for its network. */
export function limitOwner(section: OverrideSection, id: string): LimitOwner {
  const owner = section === 'addresses' ? networkOf(id) : id;
  if (owner === undefined) throw new ActionRefused(notAnAddress(id));
  return { section, id: owner };
}

/**
 * Reads `?why=…&by=…&bucket=…`, where `bucket` may be repeated, or a body as of a PUT, in which only the names of the buckets matter.
 * Without buckets, all limits are to be removed.
 *
 * @throws ActionRefused
 */
export function readRemoval(request: FactRequest) {
  const { why, by, bucket, for: _, force: __, ...named } = membersOf(request);
  const asked = bucket === undefined ? [] : [bucket].flat().map(String);
  return { buckets: [...asked, ...Object.keys(named)], ...readReason(why, by) };
}

const DEFAULT_FOR = '1h';

/**
 * Reads `{"account-read": 5000, "for": "2h", "why": "launch", "by": "alice"}`. The limits are checked as the limits file is.
 *
 * @throws ActionRefused
 */
export function readLimitRequest(body: unknown, { section, id }: LimitOwner, { rows }: Pick<Limits, 'rows'>) {
  if (!isMapping(body))
    throw new ActionRefused('Send a JSON object such as {"account-read": 5000, "why": "launch"}.');
  const { for: duration = DEFAULT_FOR, why, by, force, ...buckets } = body;
  const forMs = readFor(duration);
  const limits = Object.entries(buckets).map(([bucket, limit]) => {
    // JSON may have a number beyond every limit, 1e999, which is infinite here and would be null in the text that is checked below.
    const { counts = 'points' } = rows.find(({ name }) => name === bucket) ?? {};
    if (bucket === 'periodStartsOn')
      throw new ActionRefused(
        'periodStartsOn: is no limit: set it in the limits file, the directory or the token.',
      );
    if (!Number.isInteger(limit))
      throw new ActionRefused(`${bucket}: must be a whole number of ${unitOf(counts)}.`);
    return { bucket, limit: Number(limit) };
  });
  if (limits.length === 0) throw new ActionRefused('Name at least one bucket, such as "account-read": 5000.');
  const problems = limits.flatMap((limit) => problemOf(limit, { section, id }, rows) ?? []);
  if (problems.length > 0) throw new ActionRefused(problems.join('\n'));
  try {
    parseOverrides(JSON.stringify({ [section]: { [id]: buckets } }), 'the request', { rows, plans: [] });
  } catch (error) {
    throw new ActionRefused(problemText(problemsOf(error)));
  }
  return { limits, forMs, isForced: readForce(force), ...readReason(why, by) };
}

/** What a live limit may not be, although a file may have other keys and values there. */
function problemOf(
  { bucket, limit }: { readonly bucket: string; readonly limit: number },
  { section, id }: LimitOwner,
  rows: readonly LimitRow[],
): string | undefined {
  const all: readonly (ContractRow | LimitRow)[] = [...CONTRACT_ROWS, ...rows];
  const own = all.filter(({ scope }) => scopeNamed(scope).overrides === section);
  const row = own.findLast(({ name }) => name === bucket);
  const path = formatPath([section, id, bucket]);
  if (row === undefined) {
    const names = [...new Set(own.map(({ name }) => name))];
    const hint = didYouMean(bucket, names) ?? `expected one of ${names.join(', ')}`;
    return `${path}: unknown key "${maskUrl(bucket)}": ${hint}`;
  }
  const most = largestLimitOf(row);
  if (limit >= 1 && limit <= most) return undefined;
  return `${path}: must be a whole number from 1 to ${most}, is ${limit}`;
}

function readFor(duration: unknown): number {
  const ms = readDuration(duration, LONGEST_MS);
  if (ms !== undefined) return ms;
  throw new ActionRefused(
    'for: must be a time such as 30m, 2h or 7d, and at most 7d; a longer limit belongs in the limits file.',
  );
}

/** The problems of a limits file, without the place in a file that nobody has. */
export function problemText(problems: readonly Problem[]): string {
  return problems
    .map(({ path, message, hint }) => `${path}: ${message}${hint === undefined ? '' : `: ${hint}`}`)
    .join('\n');
}
