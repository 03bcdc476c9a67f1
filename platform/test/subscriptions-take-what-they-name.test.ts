import { describe, expect, test } from 'vitest';
import { eventTypes } from '../src/events/event-types.ts';
import { ACCT_1, ACCT_2, ACCT_3, trigger } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const PATH = '/v3/platform/webhook-subscriptions';

describe.each([quickest])('on $name', (database) => {
  const platform = usePlatform(database);

  test.each([
    ['Payee.Created', 'reserved'],
    ['Payable.DepositConfirmed', 'reserved'],
    ['Payee.Exploded', 'not an event type'],
    ['Nothing.*', 'names no resource'],
    ['invoice.paid', 'not an event type'],
    ['**', 'not an event type'],
  ])('%s is 422: %s', async (entry, why) => {
    const body = { url: 'https://example.com/hooks', subscribedEvents: ['Invoice.Paid', entry] };
    const answer = await platform.as(ACCT_1).send('POST', PATH, body);
    expect([answer.status, answer.body.errors[0]?.field]).toEqual([422, 'subscribedEvents.1']);
    expect(answer.body.detail).toContain(why);
  });

  test('the secret is only in the response to the creation', async () => {
    const client = platform.as(ACCT_1);
    const body = { url: 'https://example.com/hooks', subscribedEvents: ['Payout.*'] };
    const { body: created } = await client.send('POST', PATH, body);
    expect(created.secret).toMatch(/^whsec_/);
    const read = await client.get(`${PATH}/${created.id}`);
    const listed = await client.walk(PATH);
    const changed = await client.send('PATCH', `${PATH}/${created.id}`, { description: 'mine' });
    for (const answer of [read.body, changed.body, ...listed]) expect(answer).not.toHaveProperty('secret');
    expect(listed.map(({ id }) => id)).toContain(created.id);
    expect((await platform.as(ACCT_3).get(`${PATH}/${created.id}`)).status).toBe(404);
    expect((await client.send('DELETE', `${PATH}/${created.id}`)).status).toBe(204);
    expect((await client.get(`${PATH}/${created.id}`)).status).toBe(404);
  });

  test('an exact name, a resource wildcard and * each bring what they cover, and nothing else', async () => {
    const client = platform.as(ACCT_3);
    const [exact] = await platform.subscribe(client, ['Transfer.Completed']);
    const [wildcard] = await platform.subscribe(client, ['Transfer.*']);
    const [all] = await platform.subscribe(client, ['*']);
    for (const type of ['Transfer.Created', 'Mandate.Created', 'Transfer.Completed'])
      await trigger(client, type);
    await Promise.all([exact, wildcard, all].map((receiver) => receiver.until('Transfer.Completed')));
    await all.until('Mandate.Created');
    await Promise.all([all, wildcard].map((receiver) => receiver.until('Transfer.Created')));
    expect(exact.received.map(({ type }) => type)).toEqual(['Transfer.Completed']);
    expect(wildcard.received.map(({ type }) => type).sort()).toEqual([
      'Transfer.Completed',
      'Transfer.Created',
    ]);
    expect(all.received.length).toBe(3);
  });

  test('an event for both parties comes twice, with one occurrenceId', async () => {
    const [payer] = await platform.subscribe(platform.as(ACCT_1), ['Invoice.Paid']);
    const [payee] = await platform.subscribe(platform.as(ACCT_2), ['Invoice.Paid']);
    const id = await trigger(platform.as(ACCT_1), 'Invoice.Paid', { counterpartyAccountId: 'acct_2' });
    const [[one], [other]] = await Promise.all([payer.until('Invoice.Paid'), payee.until('Invoice.Paid')]);
    expect(one?.occurrenceId).toBe(other?.occurrenceId);
    expect(one?.id).not.toBe(other?.id);
    expect([one?.recipient.id, other?.recipient.id]).toEqual(['acct_1', 'acct_2']);
    expect(one?.data).toMatchObject({ id, status: 'Paid', externalId: expect.any(String) });
    const { body } = await platform.as(ACCT_2).get(`/v3/payments/invoices/${id}`);
    expect(body.events.paidAt).toBeDefined();
  });

  test('channel, parent and confirmation are where the contract has them, and only there', async () => {
    const client = platform.as(ACCT_1);
    const [person] = await platform.subscribe(client, ['*'], { scope: 'Person' });
    const [account] = await platform.subscribe(client, ['InvoicePayment.*', 'Invoice.*', 'Notification.*']);
    await trigger(client, 'Notification.Sent', { channel: 'SMS' });
    await trigger(client, 'Notification.Viewed');
    await trigger(client, 'InvoicePayment.Failed');
    await trigger(client, 'Invoice.DepositConfirmed');
    const [sent] = await person.until('Notification.Sent');
    const [viewed] = await person.until('Notification.Viewed');
    const [payment] = await account.until('InvoicePayment.Failed');
    const [deposit] = await account.until('Invoice.DepositConfirmed');
    expect(sent?.context).toEqual({ channel: 'SMS' });
    expect(viewed).not.toHaveProperty('context');
    expect(payment?.parent).toEqual({ type: 'Invoice', id: expect.any(String) });
    expect(payment).not.toHaveProperty('confirmation');
    expect(deposit).toHaveProperty('confirmation');
    expect(deposit).not.toHaveProperty('parent');
    // Contract section 6.3: notifications are the Person's alone.
    expect(account.received.filter(({ type }) => type.startsWith('Notification'))).toEqual([]);
  });

  test('each of the 111 types can be made to happen, and reaches a subscriber of each scope that it is sent to', async () => {
    const client = platform.as(ACCT_1);
    const scopes = ['Account', 'Organization', 'Person'] as const;
    const receivers = await Promise.all(
      scopes.map(async (scope) => [scope, (await platform.subscribe(client, ['*'], { scope }))[0]] as const),
    );
    const published = eventTypes.filter((type) => type.availableForSubscription);
    await Promise.all(published.map(({ type }) => trigger(client, type)));
    for (const [scope, receiver] of receivers) {
      const wanted = published.filter((type) => type.allowedRoutingSubjectTypes.includes(scope));
      for (const { type } of wanted) await receiver.until(type);
      expect(new Set(receiver.received.map(({ type }) => type))).toEqual(
        new Set(wanted.map(({ type }) => type)),
      );
      expect(receiver.unverified).toEqual([]);
    }
  });
});
