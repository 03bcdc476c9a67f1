import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Database } from '../src/database/schema.ts';
import type { Call } from '../src/http/call.ts';
import { readPage } from '../src/lists/page.ts';
import { resourceList } from '../src/lists/resource-list.ts';
import { createTokenSealer, type TokenSealer } from '../src/lists/token.ts';
import { resourceRow } from '../src/resources/resources.ts';
import { databases, useDatabase } from './fixtures/databases.ts';

type Change = { readonly kind: 'insert' | 'delete' | 'update' | 'leave'; readonly at: number };

const change = fc.record<Change>({
  kind: fc.constantFrom('insert', 'delete', 'update', 'leave'),
  at: fc.nat(),
});
const walk = fc.record({
  rows: fc.integer({ min: 0, max: 25 }),
  size: fc.integer({ min: 1, max: 9 }),
  changes: fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 12 }),
});

describe.each(databases)('on $name', ({ open }) => {
  const database = useDatabase(open);

  test('an unchanged row is returned exactly once, while others are added, removed and changed', async () => {
    const { db } = database;
    const sealer = createTokenSealer(Buffer.alloc(32), 900, Date.now);
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(walk, async ({ rows, size, changes }) => {
        const list = new ChangingList(db, `acct_${runs++}`);
        for (let i = 0; i < rows; i++) list.unchanged.add(await list.insert());
        const met = await list.walk(sealer, size, changes);
        expect(new Set(met).size).toBe(met.length);
        for (const id of list.unchanged) expect(met).toContain(id);
      }),
      { numRuns: 15 },
    );
  });
});

/** The payees of one Account, and which of them nobody has touched. */
class ChangingList {
  readonly unchanged = new Set<string>();
  readonly #db: Database;
  readonly #accountId: string;
  #made = 0;

  constructor(db: Database, accountId: string) {
    this.#db = db;
    this.#accountId = accountId;
  }

  call(query: Call['query']): Call {
    const caller = { accountId: this.#accountId, organizationId: undefined, principalId: 'p', personId: 'p' };
    return { operationId: 'list', caller, params: {}, query, body: undefined, idempotencyKey: undefined };
  }

  /** The ids that a client meets, while changes are made after each page. */
  async walk(sealer: TokenSealer, size: number, changes: readonly (readonly Change[])[]): Promise<string[]> {
    const met: string[] = [];
    let token = '';
    for (let page = 0; page === 0 || token !== ''; page++) {
      const call = this.call({ 'page[size]': size, ...(token && { 'page[token]': token }) });
      const body = await readPage(sealer, call, resourceList(this.#db, call, 'Payee'));
      met.push(...body.data.map((row) => (row as { id: string }).id));
      token = body.pagination.nextPageToken;
      for (const one of changes[page] ?? []) await this.apply(one);
    }
    return met;
  }

  async insert(): Promise<string> {
    const id = `${this.#accountId}-${this.#made++}`;
    const row = { id, kind: 'Payee', status: 'Activated', account_id: this.#accountId, at: new Date(0) };
    await this.#db.insertInto('resources').values(resourceRow(row)).execute();
    return id;
  }

  async apply({ kind, at }: Change): Promise<void> {
    if (kind === 'insert') await this.insert();
    const id = [...this.unchanged][at % Math.max(this.unchanged.size, 1)];
    if (kind === 'leave' || kind === 'insert' || id === undefined) return;
    this.unchanged.delete(id);
    if (kind === 'delete') await this.#db.deleteFrom('resources').where('id', '=', id).execute();
    else await this.#db.updateTable('resources').set({ status: 'Changed' }).where('id', '=', id).execute();
  }
}
