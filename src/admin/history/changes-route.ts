import type { FastifyInstance } from 'fastify';
import { isMapping } from '../../config/reader/schema-node.ts';
import { startOfDayMs } from '../../domain/limits/calendar.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import { ActionRefused, readDuration, readReason } from '../action.ts';
import { orRefusal } from '../facts/fact-api.ts';
import { StoreUnavailable } from '../facts/fact-change.ts';
import { type ShownChange, shown } from './change.ts';
import { type ChangeHistory, KEPT_MS } from './change-history.ts';
import { SEEN_KIND } from './losses.ts';

/**
 * Adds `GET /changes?since=24h`: what changed, newest first; 503 while Redis cannot be read. And `POST /losses/seen`, by which an operator
 * has the consoles no longer show what was lost.
 *
 * @param nowMs Unix time by the clock of Redis
 */
export function addChangesRoutes(
  app: FastifyInstance,
  history: ChangeHistory,
  log: Changes,
  nowMs: () => number,
): void {
  app.get<{ Querystring: { since?: string } }>('/changes', async ({ query: { since = '24h' } }, reply) => {
    const ms = readDuration(since, KEPT_MS);
    if (ms === undefined)
      return reply.code(400).send({ error: 'since: must be a time such as 30m, 24h or 7d, and at most 7d.' });
    const { changes, isWhole } = await history.read();
    const sinceMs = nowMs() - ms;
    if (isWhole) return changes.filter(({ atMs }) => atMs >= sinceMs).map(shown);
    return reply.code(503).send({ error: 'The changes are in Redis, which cannot be read.' });
  });
  app.post('/losses/seen', ({ body }, reply) => orRefusal(reply, () => see(history, log, nowMs(), body)));
}

async function see(history: ChangeHistory, log: Changes, atMs: number, body: unknown): Promise<ShownChange> {
  const { why, by, until } = isMapping(body) ? body : {};
  const reason = readReason(why, by);
  const seenMs = until === undefined ? atMs : pastTimeMs(String(until), atMs);
  if (seenMs === undefined)
    throw new ActionRefused(
      'until: must be a time in ISO 8601 that has passed, such as 2026-11-28T13:05:00Z.',
    );
  const untilText = new Date(seenMs).toISOString();
  const change = {
    atMs,
    kind: SEEN_KIND,
    subject: null,
    text: `until ${untilText}`,
    ...reason,
    replica: null,
    seenMs,
  };
  const isWritten = await history.addNow(change);
  const outcome = isWritten ? 'changed' : 'unknown';
  log.info({ audit: true, action: 'losses seen', ...reason, outcome, until: untilText }, 'losses seen');
  if (!isWritten) throw new StoreUnavailable('Redis does not answer. It is recorded when Redis is back.');
  return shown(change);
}

/** A time of ISO 8601 with its zone. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

/** A time up to now, in Unix ms. `Date.parse` takes 30 February for 2 March, and finds a time in texts such as `loss 5`. */
function pastTimeMs(text: string, nowMs: number): number | undefined {
  const isTime = ISO_TIME.test(text) && startOfDayMs(text.slice(0, 10)) !== undefined;
  const ms = isTime ? Date.parse(text) : Number.NaN;
  return ms >= 0 && ms <= nowMs ? ms : undefined;
}
