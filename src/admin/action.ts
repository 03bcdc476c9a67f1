import { parseDuration } from '../domain/duration.ts';
import { rangeOf } from '../domain/network.ts';
import { PLAIN_TEXT } from '../domain/printable.ts';
import type { ChangeReason } from '../facts/operator-facts.ts';

/** A request that cannot be carried out as it is. The message is for the person who sent it. */
export class ActionRefused extends Error {
  override readonly name: string = 'ActionRefused';
  readonly status: number = 400;
  /** Further members of the answer. */
  readonly details: object = {};
}

const MAX_TEXT_CHARACTERS = 200;

const PLAIN = new RegExp(PLAIN_TEXT, 'u');

/** Who acts, and why: every audit line has both. Throws an ActionRefused for what is no text, or too long. */
export function readReason(why: unknown, by: unknown): ChangeReason {
  return { why: readText('why', why), by: readText('by', by ?? 'unnamed') };
}

function readText(name: string, value: unknown): string {
  const text = typeof value === 'string' ? value.trim() : '';
  if (text === '' || text.length > MAX_TEXT_CHARACTERS) {
    throw new ActionRefused(
      `${name}: must be text of at most ${MAX_TEXT_CHARACTERS} characters, and not empty.`,
    );
  }
  if (!PLAIN.test(text)) throw new ActionRefused(`${name}: must be one line without control characters.`);
  return text;
}

/** A time such as `30m`, `2h` or `7d`, in ms. Undefined for anything else, for less than a second, and for more than `longestMs`. */
export function readDuration(duration: unknown, longestMs: number): number | undefined {
  const ms = 1_000 * (parseDuration(String(duration)) ?? 0);
  return ms > 0 && ms <= longestMs ? ms : undefined;
}

/** Reads `force`: whether a change is made although nobody is known to have the id. Throws an ActionRefused unless it is a boolean. */
export function readForce(force: unknown): boolean {
  if (typeof force === 'boolean') return force;
  if (force === undefined) return false;
  throw new ActionRefused('force: must be true or false.');
}

/** Why an id is no single address. */
export function notAnAddress(id: string): string {
  return rangeOf(id) === undefined
    ? `${id} is not an IP address.`
    : `${id} is a range of addresses. Limits and usage are for one address, or one /64 network of IPv6; only a block may name a range.`;
}
