import type { FastifyReply } from 'fastify';
import { parseDuration } from '../domain/duration.ts';
import { PLAIN_TEXT } from '../domain/printable.ts';

/** A request that cannot be carried out as it is. The message is for the person who sent it. */
export class ActionRefused extends Error {
  override readonly name: string = 'ActionRefused';
  readonly status: number = 400;
}

const MAX_TEXT_CHARACTERS = 200;

const PLAIN = new RegExp(PLAIN_TEXT, 'u');

/** Who acts, and why: every audit line has both. */
export function readReason(why: unknown, by: unknown): { readonly why: string; readonly by: string } {
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

/** The result of an action, or the reason why it was refused: as a status, and JSON with `error`. */
export async function orRefusal(reply: FastifyReply, act: () => Promise<unknown>): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof ActionRefused) return reply.code(error.status).send({ error: error.message });
    throw error;
  }
}

/** How old each list of what the replicas share is, in seconds: the time since it was read from Redis. */
export interface Ages {
  limits(): number;
  blocks(): number;
  revocations(): number;
}

/** Says how old an answer is (RFC 9111 section 5.1). */
export function withAge(reply: FastifyReply, ageSeconds: number): FastifyReply {
  return reply.header('Age', Math.floor(ageSeconds));
}
