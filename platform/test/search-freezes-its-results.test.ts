import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

describe.each(databases)('on $name', (database) => {
  let nowMs = Date.now();
  const platform = usePlatform(database, { now: () => new Date(nowMs), snapshotLifetimeSeconds: 600 });

  test('a search is live and uncounted unless it is materialized', async () => {
    const client = platform.as(ACCT_1);
    const { body } = await client.get('/v3/search/payees?filter[name][contains]=ALM');
    expect(body.pagination).not.toHaveProperty('totalSize');
    expect(body.pagination).not.toHaveProperty('resultSetId');
    expect(body.data.length).toBe(10);
    expect((await client.get('/v3/search/payees?filter[name][contains]=%25')).body.data).toEqual([]);
    expect((await client.get('/v3/search/payees?page[mode]=live')).status).toBe(422);
  });

  test('a materialized search pages the same results, whatever changes in the meantime', async () => {
    const client = platform.as(ACCT_1);
    const search = '/v3/search/payees?page[mode]=materialized&filter[status][eq]=Invited&page[size]=5';
    const first = await client.get(search);
    const { resultSetId, totalSize } = first.body.pagination;
    expect(totalSize).toBe(12);
    const wanted = await client.walk('/v3/payments/payees?filter[status][eq]=Invited');
    for (const { id } of wanted) await trigger(client, 'Payee.Activated', { resourceId: id });
    expect((await client.walk('/v3/search/payees?filter[status][eq]=Invited')).length).toBe(0);
    const frozen = await client.walk(`${search}&page[resultSetId]=${resultSetId}`);
    expect(frozen).toEqual(wanted);
  });

  test('a snapshot that has expired, or is another Account’s, is 404 ResourceNotFound; with other filters, 422', async () => {
    const client = platform.as(ACCT_1);
    const { body } = await client.get('/v3/search/invoices?page[mode]=materialized&page[size]=5');
    const page = `/v3/search/invoices?page[mode]=materialized&page[resultSetId]=${body.pagination.resultSetId}`;
    expect((await client.get(page)).status).toBe(200);
    expect((await client.get(`${page}&page[token]=${body.pagination.nextPageToken}`)).status).toBe(200);
    expect((await client.get(`${page}&filter[status][eq]=Open`)).status).toBe(422);
    expect((await platform.as(ACCT_2).get(page)).status).toBe(404);
    nowMs += 600_001;
    const late = await client.get(page);
    expect([late.status, late.body.code]).toEqual([404, 'ResourceNotFound']);
    expect((await client.get('/v3/search/invoices?page[mode]=materialized')).status).toBe(200);
  });

  test('a walk that repeats the identical request with the page token stays in its snapshot', async () => {
    const client = platform.as(ACCT_1);
    const search = '/v3/search/payees?page[mode]=materialized&page[size]=7';
    const first = await client.get(search);
    const ids = (await client.walk(search)).map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([60, 60]);
    const second = await client.get(`${search}&page[token]=${first.body.pagination.nextPageToken}`);
    expect(second.body.pagination.resultSetId).toBe(first.body.pagination.resultSetId);
    const other = (await client.get(search)).body.pagination.resultSetId;
    const mixed = `${search}&page[token]=${first.body.pagination.nextPageToken}&page[resultSetId]=${other}`;
    expect((await client.get(mixed)).status).toBe(422);
    nowMs += 600_001;
    const late = await client.get(`${search}&page[token]=${first.body.pagination.nextPageToken}`);
    expect([late.status, late.body.code]).toEqual([404, 'ResourceNotFound']);
  });

  test.each([
    ['its token', 600_001],
    ['a token that has expired as well', 900_001],
    ['a token of last year', 366 * 24 * 3_600_000],
  ])('a snapshot that has expired is 404 with %s, whatever else the request says', async (_, ageMs) => {
    const client = platform.as(ACCT_1);
    const search = '/v3/search/invoices?page[mode]=materialized&page[size]=2';
    const { resultSetId, nextPageToken } = (await client.get(search)).body.pagination;
    nowMs += ageMs;
    const { pagination: alive } = (await client.get(search)).body;
    const named = `page[resultSetId]=${resultSetId}`;
    const token = `page[token]=${nextPageToken}`;
    const statusOf = async (more: string) => {
      const { status, body } = await client.get(`${search}&${more}`);
      return [more, status, status === 404 ? body.code : body.errors[0]?.field];
    };
    for (const expired of [
      ...[named, token, `${named}&${token}`, `${named}&page[token]=nonsense`],
      ...[`${named}&filter[status][eq]=Open`, `${named}&${token}&filter[status][eq]=Open`],
      ...[`${named}&page[token]=${alive.nextPageToken}`, 'page[resultSetId]=rs_never'],
    ])
      expect(await statusOf(expired)).toEqual([expired, 404, 'ResourceNotFound']);
    // The document refuses it, or it names no snapshot that can be read.
    for (const [wrong, field] of [
      [`${named}&limit=5`, 'limit'],
      [`${named}&${token}&page[size]=0`, 'page[size]'],
      [`${token}&filter[status][eq]=Open`, 'page[token]'],
      [`page[resultSetId]=${alive.resultSetId}&${token}`, 'page[token]'],
    ] as const)
      expect(await statusOf(wrong)).toEqual([wrong, 422, field]);
    const live = `/v3/search/invoices?page[size]=2&${token}`;
    expect((await client.get(live)).status).toBe(422);
  });

  test('a token that does not open leaves no snapshot, and an Account has twenty at most, the oldest making way', async () => {
    const client = platform.as(ACCT_3);
    const search = '/v3/search/payables?page[mode]=materialized&page[size]=1';
    const live = await client.get('/v3/search/payables?page[size]=1');
    const pageOf = (id: string) => client.get(`${search}&page[resultSetId]=${id}`);
    const made: string[] = [];
    for (let i = 0; i < 20; i++) {
      made.push((await client.get(search)).body.pagination.resultSetId);
      nowMs += 1;
    }
    for (const token of ['nonsense', live.body.pagination.nextPageToken])
      expect((await client.get(`${search}&page[token]=${token}`)).status).toBe(422);
    for (const id of made) expect((await pageOf(id)).status).toBe(200);
    await client.get(search);
    expect((await pageOf(made[0] ?? '')).status).toBe(404);
    expect((await pageOf(made[1] ?? '')).status).toBe(200);
  });
});
