import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { selectEvents } from '../src/handlers/events.ts';
import type { Call } from '../src/http/call.ts';
import { databases, useDatabase } from './fixtures/databases.ts';

const RECIPIENTS = [
  { scope_type: 'Account', scope_id: 'acct_1' },
  { scope_type: 'Organization', scope_id: 'org_1' },
  { scope_type: 'Person', scope_id: 'person_1' },
  { scope_type: 'Account', scope_id: 'acct_2' },
];
const EVENTS = 4000;
const EVENTS_AT_ONCE = 1000;
const PAGE = 26;

/** What PostgreSQL says of a step: https://www.postgresql.org/docs/current/sql-explain.html */
interface Step {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Step[];
}

describe.each(databases)('on $name', ({ open }) => {
  const database = useDatabase(open);
  beforeAll(async () => {
    const at = new Date();
    const events = Array.from({ length: EVENTS }, (_, i) => ({
      id: `evt_${i}`,
      type: 'Role.Created',
      ...(RECIPIENTS[i % RECIPIENTS.length] ?? { scope_type: '', scope_id: '' }),
      resource_id: `role_${i}`,
      payload: JSON.stringify({ id: `evt_${i}` }),
      occurrence_id: null,
      occurred_at: at,
      relayed_at: at,
    }));
    // PGlite reads the number of a statement's values as 16 bits with a sign.
    for (let from = 0; from < EVENTS; from += EVENTS_AT_ONCE)
      await database.db
        .insertInto('events')
        .values(events.slice(from, from + EVENTS_AT_ONCE))
        .execute();
    await sql`analyze events`.execute(database.db);
  });
  const call = (query: Call['query']): Call => ({
    operationId: 'listEvents',
    caller: { accountId: 'acct_1', organizationId: 'org_1', principalId: 'person_1', personId: 'person_1' },
    params: {},
    query,
    body: undefined,
    idempotencyKey: undefined,
  });

  test.each([
    ['without a filter', {}],
    ['of one type', { 'filter[type][eq]': 'Role.Created' }],
  ])('a page %s is the next events of all recipients, and reads a page of each at most', async (_, query) => {
    const page = selectEvents(database.db, call(query), '1000', PAGE);
    const rows = await page.execute();
    const wanted = Array.from({ length: EVENTS }, (_, i) => `evt_${i}`).filter(
      (_, i) => i >= 1000 && i % RECIPIENTS.length !== 3,
    );
    expect(rows.map(({ payload }) => payload.id)).toEqual(wanted.slice(0, PAGE));
    const [explained] = await page.explain<{ 'QUERY PLAN': [{ Plan: Step }] }>('json', sql`analyze`);
    expect(rowsRead(explained?.['QUERY PLAN'][0].Plan)).toBeLessThanOrEqual(3 * PAGE);
  });
});

/** How many events the steps of a plan read. */
function rowsRead(step: Step | undefined): number {
  if (!step) throw new Error('nothing was explained');
  const own =
    step['Relation Name'] === 'events' ? step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0) : 0;
  return (step.Plans ?? []).reduce((sum, part) => sum + rowsRead(part), own);
}
