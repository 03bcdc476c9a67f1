import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Call } from '../src/http/call.ts';
import { MOST_COUNTED, readPage } from '../src/lists/page.ts';
import { resourceList } from '../src/lists/resource-list.ts';
import { createSnapshot } from '../src/lists/search-snapshots.ts';
import { createTokenSealer } from '../src/lists/token.ts';
import { databases, useDatabase } from './fixtures/databases.ts';

const sealer = createTokenSealer(Buffer.alloc(32), 900, Date.now);

describe.each(databases)('on $name', ({ open }) => {
  const database = useDatabase(open);

  const call = (query: Call['query'] = {}): Call => ({
    operationId: 'listPayables',
    caller: {
      accountId: 'acct_1',
      organizationId: undefined,
      principalId: 'person_1',
      personId: 'person_1',
    },
    params: {},
    query,
    body: undefined,
    idempotencyKey: undefined,
  });

  /** Writes payables, of which the last one is to its own Account. */
  async function insert(name: string, owner: string, count: number): Promise<void> {
    await sql`
      insert into resources (id, kind, account_id, counterparty_account_id, status, external_id, created_at, updated_at)
      select ${name}::text || number, 'Payable', ${owner},
        case when number = ${count} or ${owner}::text <> 'acct_1' then 'acct_1' end, 'Open', ${name}, now(), now()
      from generate_series(1, ${count}::int) number
    `.execute(database.db);
  }

  async function totalSize(query?: Call['query']): Promise<number | undefined> {
    const source = resourceList(database.db, call(query), 'Payable');
    return (await readPage(sealer, call(query), source)).pagination.totalSize;
  }

  const freeze = () => createSnapshot(database.db, call(), 'Payable', 600, new Date());

  test('a list is counted up to its bound, what the Account owns and what it is the other party of together', async () => {
    await insert('own', 'acct_1', MOST_COUNTED - 100);
    await insert('other', 'acct_2', 100);
    expect(await totalSize()).toBe(MOST_COUNTED);
    expect((await freeze()).totalSize).toBe(MOST_COUNTED);
    await insert('more', 'acct_2', 1);
    expect(await totalSize()).toBeUndefined();
    expect(await totalSize({ 'filter[externalId][eq]': 'other' })).toBe(100);
    await expect(freeze()).rejects.toThrow(`freezes at most ${MOST_COUNTED} results`);
  });
});
