import { describe, expect, test } from 'vitest';
import { catalog, namesOf } from '../src/catalog/catalog.ts';
import type { CatalogResource } from '../src/catalog/resource.ts';
import { eventTypes } from '../src/events/event-types.ts';
import { timestampName } from '../src/events/transitions.ts';
import { ACCT_1, ACCT_2, ACCT_3, type Client, trigger } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';
import type { Receiver } from './fixtures/receiver.ts';

const published = eventTypes.filter(({ availableForSubscription }) => availableForSubscription);
const kinds = Object.entries(catalog).map(([kind, entry]) => ({ kind, entry, ...namesOf(kind, entry) }));
const STRANGER = { 'x-account-id': 'acct_9', 'x-principal-id': 'person_9', 'x-principal-type': 'Person' };

/** The times that a resource with this status has. If no event leads to the status, it has only the time of its creation. */
function timesOf({ events }: CatalogResource, status: string): unknown {
  const isReached = status === 'Created' || Object.hasOwn(events, status);
  return isReached ? expect.arrayContaining(['createdAt', timestampName(status)]) : ['createdAt'];
}

describe.each([quickest])('on $name', (database) => {
  // No payment settles meanwhile: it would change its payable and its invoice from one list to the next.
  const platform = usePlatform(database, { settlementSeconds: 3600 });

  test('the demo data has the time of each status, and of none that was not reached', async () => {
    const client = platform.as(ACCT_1);
    for (const { entry, path } of kinds.filter(({ kind }) => kind !== 'Operation'))
      for (const { id, status, events } of await client.walk(path)) {
        const times = timesOf(entry, String(status));
        expect([id, status, Object.keys(events)]).toEqual([id, status, times]);
      }
  });

  test('every recipient of an event reads the resource by the id that the event holds, and a stranger does not', async () => {
    const owner = platform.as(ACCT_1);
    const other = platform.as(ACCT_2);
    const receivers: [Client, Receiver][] = [];
    for (const scope of ['Account', 'Organization', 'Person'])
      receivers.push([owner, (await platform.subscribe(owner, ['*'], { scope }))[0]]);
    receivers.push([other, (await platform.subscribe(other, ['*']))[0]]);
    const types = new Map(published.map(({ resource, type }) => [resource, type]));
    const happened = await Promise.all(
      [...types].map(async ([kind, type]) => [kind, await trigger(owner, type)] as const),
    );
    const read = new Set<string>();
    for (const [client, receiver] of receivers) {
      const own = happened.filter(([kind]) => isSentTo(kind, receiver, receivers));
      await receiver.untilAbout(own.map(([, id]) => id));
      for (const { type, data } of receiver.received) {
        const [kind = ''] = type.split('.');
        const path = `${pathOf(kind)}/${data.id}`;
        const answer = await client.get(path);
        expect([path, answer.status, answer.body.id]).toEqual([path, 200, data.id]);
        expect((await platform.as(STRANGER).get(path)).status).toBe(404);
        read.add(kind);
      }
    }
    expect([...read].sort()).toEqual([...types.keys()].sort());
  });

  test('each of the 111 types leads to its resource, with the status and the time of the event', async () => {
    const client = platform.as(ACCT_1);
    const created = await Promise.all(
      published.map(async ({ type }) => {
        const [kind = '', part = ''] = type.split('.');
        const read = await client.get(`${pathOf(kind)}/${await trigger(client, type)}`);
        return [type, read.status, read.body.events?.[timestampName(part)] !== undefined];
      }),
    );
    expect(created).toEqual(published.map(({ type }) => [type, 200, true]));
  });

  test('an event of an operation that runs ends it once, and one that has ended is refused', async () => {
    const client = platform.as(ACCT_1);
    const resourceId = await trigger(client, 'Operation.Created');
    await trigger(client, 'Operation.Failed', { resourceId });
    const { body } = await client.get(`${pathOf('Operation')}/${resourceId}`);
    expect([body.status, body.error.code]).toEqual(['Failed', 'ServiceUnavailable']);
    const send = (who: Record<string, string>) =>
      platform
        .as(who)
        .send('POST', '/v3/platform/event-triggers', { type: 'Operation.Completed', resourceId });
    expect((await send(ACCT_1)).body.errors[0]?.field).toBe('resourceId');
    expect((await send(ACCT_3)).status).toBe(404);
  });

  test.each(kinds)(
    '$plural are listed by pages, counted and filtered, each as it is read by its id',
    async ({ path }) => {
      const client = platform.as(ACCT_1);
      if (path.endsWith('/operations')) {
        const { body: opened } = await client.send('POST', '/v3/payments/payables/payable_1002/open');
        // An operation that ends in between would differ from one list to the next.
        await client.poll(`${path}/${opened.id}`, ({ status }) => status !== 'Pending');
      }
      const { body } = await client.get(`${path}?page[size]=1`);
      expect(body.data.length, `demo data at ${path}`).toBe(1);
      const all = await client.walk(`${path}?page[size]=100`);
      expect(all.length).toBe(body.pagination.totalSize);
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
      const [one] = all;
      expect((await client.get(`${path}/${one?.id}`)).body).toEqual(one);
      const ofStatus = await client.walk(`${path}?filter[status][eq]=${one?.status}`);
      expect(ofStatus).toEqual(all.filter(({ status }) => status === one?.status));
      const ofExternalId = await client.walk(`${path}?filter[externalId][eq]=${one?.externalId}`);
      expect(ofExternalId.map(({ id }) => id)).toContain(one?.id);
      expect((await client.get(`${path}?filter[createdAt][gte]=2999-01-01T00:00:00Z`)).body.data).toEqual([]);
      expect((await client.get(`${path}?limit=1`)).status).toBe(422);
    },
  );

  test('a payable is in the lists of both parties, and counterpartyAccountId separates incoming ones', async () => {
    const path = '/v3/payments/payables';
    const seeded = /^payable_\d{4}$/;
    const all = (await platform.as(ACCT_2).walk(path)).filter(({ id }) => seeded.test(id));
    const mine = await platform.as(ACCT_2).walk(`${path}?filter[accountId][eq]=acct_2`);
    const incoming = all.filter(({ counterpartyAccountId }) => counterpartyAccountId === 'acct_2');
    expect([mine.length, incoming.length]).toEqual([20, 20]);
    expect(all.length).toBe(40);
    expect(all.map(({ id }) => id)).not.toContain('payable_3001');
    expect((await platform.as(ACCT_3).get(`${path}/payable_1001`)).status).toBe(404);
  });
});

function pathOf(kind: string): string | undefined {
  return kinds.find((one) => one.kind === kind)?.path;
}

/** Whether a kind that acct_1 makes something happen to is sent to this receiver. */
function isSentTo(kind: string, receiver: Receiver, receivers: readonly [Client, Receiver][]): boolean {
  const [account, organization, person, other] = receivers.map(([, one]) => one);
  const entry = catalog[kind];
  if (receiver === other) return entry?.bothParties === true;
  const scope =
    receiver === account ? 'Account' : receiver === organization ? 'Organization' : person ? 'Person' : '';
  return entry?.scopes.some((one) => one === scope) === true;
}
