import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ScopeName } from '../../domain/limits/scopes.ts';
import type { DaySum, OwnerDaySum, PostgresJournal } from '../../store/journal/postgres.ts';
import { orRefusal } from '../facts/fact-api.ts';
import type { KnownOwners } from '../find/known-owners.ts';
import { blockScopeOf } from './owner-usage.ts';
import { type PastQuery, pastOf } from './past.ts';

export type PastUsage = Extract<Awaited<ReturnType<typeof readPast>>, object>;

const NO_JOURNAL = 'This gateway records nothing: journal.url is not set.';

/** All that the journal has. */
const EVER = { from: new Date(0), to: new Date('9999-01-01T00:00:00Z'), timeZone: 'UTC' };

/** Answers what an owner used in a past period. 404 for an id that neither the journal nor the fleet knows. */
export async function answerPast(
  reply: FastifyReply,
  counts: PostgresJournal | undefined,
  owners: Pick<KnownOwners, 'knowledgeOf' | 'unknown'>,
  owner: { readonly scope: ScopeName; readonly id: string },
  query: PastQuery,
) {
  if (counts === undefined) return reply.code(404).send({ error: NO_JOURNAL });
  try {
    return await orRefusal(reply, async () => {
      const past = await readPast(counts, owner, query);
      if (typeof past === 'string') return reply.code(400).send({ error: past });
      if (past.days.length === 0) await refuseUnknown(counts, owners, owner);
      return past;
    });
  } catch (error) {
    return reply.code(503).send({ error: `The journal cannot be read: ${(error as Error).message}` });
  }
}

/** Rejects with an UnknownOwner for an id that the journal has nothing of, and that nobody is known to have. */
async function refuseUnknown(
  counts: PostgresJournal,
  owners: Pick<KnownOwners, 'knowledgeOf' | 'unknown'>,
  { scope, id }: { readonly scope: ScopeName; readonly id: string },
): Promise<void> {
  const blockScope = blockScopeOf(scope);
  const knowledge = await owners.knowledgeOf(blockScope, id);
  if (knowledge === 'known' || (await counts.past(scope, id, EVER)).length > 0) return;
  throw await owners.unknown(blockScope, id, knowledge);
}

/** What an owner used in a past period, by day, operation and limit; or what is wrong with the query. */
async function readPast(
  counts: PostgresJournal,
  { scope, id }: { readonly scope: ScopeName; readonly id: string },
  query: PastQuery,
) {
  const past = pastOf(query);
  if (typeof past === 'string') return past;
  const { period, timeZone, startsOn, from, to } = past;
  const days = await counts.past(scope, id, past);
  return {
    scope,
    id,
    period,
    timeZone,
    startsOn,
    from: from.toISOString(),
    to: to.toISOString(),
    /** Counts of the last moments before this time may be missing. */
    asOf: new Date().toISOString(),
    /** The sums of the whole period by limit. */
    limits: totalsOf(days),
    days,
  };
}

function totalsOf(days: readonly DaySum[]) {
  const totals = new Map<string, { limit: string; points: number; requests: number; refused: number }>();
  for (const { limit, points, requests, refused } of days) {
    const total = totals.get(limit) ?? { limit, points: 0, requests: 0, refused: 0 };
    total.points += points;
    total.requests += requests;
    total.refused += refused;
    totals.set(limit, total);
  }
  return [...totals.values()];
}

const COLUMNS = ['scope', 'id', 'day', 'operation', 'limit', 'points', 'requests', 'refused'] as const;

/** The first line of sums as CSV. */
export const csvHead = `${COLUMNS.join(',')}\r\n`;

/** The forms of an export, and how they write a row. */
const FORMS = {
  'text/csv': { head: csvHead, line: csvLine },
  'application/x-ndjson': { head: '', line: (row: OwnerDaySum) => `${JSON.stringify(row)}\n` },
};

/** Adds `/usage/export`, with what all owners used in a past period. */
export function addExportRoute(app: FastifyInstance, counts: PostgresJournal | undefined): void {
  app.get<{ Querystring: { period?: string; timeZone?: string; startsOn?: string } }>(
    '/usage/export',
    async ({ query, headers }, reply) => {
      if (counts === undefined) return reply.code(404).send({ error: NO_JOURNAL });
      const past = pastOf({ ...query, period: `${query.period ?? ''}` });
      if (typeof past === 'string') return reply.code(400).send({ error: past });
      const type = headers.accept?.includes('ndjson') === true ? 'application/x-ndjson' : 'text/csv';
      const pages = counts.exported(past)[Symbol.asyncIterator]();
      // Read before the response begins, so that a database that does not answer is a 503.
      let first: IteratorResult<readonly OwnerDaySum[]>;
      try {
        first = await pages.next();
      } catch (error) {
        return reply.code(503).send({ error: `The journal cannot be read: ${(error as Error).message}` });
      }
      return reply.type(type).send(Readable.from(textOf(first, pages, FORMS[type])));
    },
  );
}

/** The text of an export, a page at a time. */
async function* textOf(
  first: IteratorResult<readonly OwnerDaySum[]>,
  pages: AsyncIterator<readonly OwnerDaySum[]>,
  { head, line }: (typeof FORMS)[keyof typeof FORMS],
): AsyncGenerator<string> {
  if (head !== '') yield head;
  for (let page = first; page.done !== true; page = await pages.next()) yield page.value.map(line).join('');
}

/** What a spreadsheet would calculate. A caller may have chosen its id. */
const FORMULA = /^[=+\-@\t\r]/;

/** A row of CSV (RFC 4180). A text that a spreadsheet would take for a formula has an apostrophe before it. */
export function csvLine(row: OwnerDaySum): string {
  return `${COLUMNS.map((column) => csvField(row[column])).join(',')}\r\n`;
}

function csvField(value: string | number): string {
  const text = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : `${value}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
