import { parseOverrides } from '../../config/files/limits/parse.ts';
import { ConfigError } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import type { BucketName, OverrideSection } from '../../domain/buckets.ts';
import type { LiveLimit } from '../../domain/live-limits.ts';

/** A request that cannot be carried out as it is. The message is for the person who sent it. */
export class LimitRefused extends Error {
  override readonly name = 'LimitRefused';
}

/** The owner of a limit: a section of the limits file, and an id. */
export interface LimitOwner {
  readonly section: OverrideSection;
  readonly id: string;
}

/** What a `PUT /limits/live/…` asks for. */
export interface LimitRequest {
  readonly limits: readonly Pick<LiveLimit, 'bucket' | 'limit'>[];
  readonly forMs: number;
  readonly why: string;
  readonly by: string;
}

const MAX_TEXT_CHARACTERS = 200;

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Files remain the source of truth: what is needed for longer belongs in one. */
const LONGEST_MS = 7 * 86_400_000;

const DEFAULT_FOR = '1h';

/**
 * Reads `{"account-read": 5000, "for": "2h", "why": "launch", "by": "alice"}`. The limits are checked as the limits file is.
 *
 * @throws LimitRefused
 */
export function readLimitRequest(body: unknown, { section, id }: LimitOwner): LimitRequest {
  if (!isMapping(body))
    throw new LimitRefused('Send a JSON object such as {"account-read": 5000, "why": "launch"}.');
  const { for: duration = DEFAULT_FOR, why, by, ...buckets } = body;
  const forMs = readDuration(duration);
  const limits = Object.entries(buckets).map(([bucket, limit]) => {
    if (typeof limit !== 'number') throw new LimitRefused(`${bucket}: must be a whole number of points.`);
    return { bucket: bucket as BucketName, limit };
  });
  if (limits.length === 0) throw new LimitRefused('Name at least one bucket, such as "account-read": 5000.');
  try {
    parseOverrides(JSON.stringify({ [section]: { [id]: buckets } }), 'the request');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new LimitRefused(problemText(error));
  }
  return { limits, forMs, ...readReason(why, by) };
}

/** Who acts, and why: every audit line has both. */
export function readReason(why: unknown, by: unknown): { readonly why: string; readonly by: string } {
  return { why: readText('why', why), by: readText('by', by ?? 'unnamed') };
}

function readText(name: string, value: unknown): string {
  const text = typeof value === 'string' ? value.trim() : '';
  if (text !== '' && text.length <= MAX_TEXT_CHARACTERS) return text;
  throw new LimitRefused(
    `${name}: must be text of at most ${MAX_TEXT_CHARACTERS} characters, and not empty.`,
  );
}

function readDuration(duration: unknown): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(String(duration)) ?? [];
  const ms = Number(count) * (UNITS_MS[unit] ?? Number.NaN);
  if (ms >= 1_000 && ms <= LONGEST_MS) return ms;
  throw new LimitRefused(
    'for: must be a time such as 30m, 2h or 7d, and at most 7d; a longer limit belongs in the limits file.',
  );
}

/** The problems of a limits file, without the place in a file that nobody has. */
export function problemText({ problems }: ConfigError): string {
  return problems
    .map(({ path, message, hint }) => `${path}: ${message}${hint === undefined ? '' : `: ${hint}`}`)
    .join('\n');
}
