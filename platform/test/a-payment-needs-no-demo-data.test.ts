import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, type Client, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const MONEY = { amount: '99.90', currency: 'EUR' };

describe.each(databases)('on $name', (database) => {
  const platform = usePlatform(database, { seed: false });

  async function create(client: Client, list: string, body: object): Promise<string> {
    const answer = await client.send('POST', `/v3/payments/${list}`, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    expect((await client.get(`/v3/payments/${list}/${answer.body.id}`)).body).toEqual(answer.body);
    return answer.body.id;
  }

  async function createPayee(payer: Client): Promise<string> {
    const id = await create(payer, 'payees', { name: 'Ada', externalId: 'vendor-1' });
    await payer.send('POST', `/v3/payments/payees/${id}/associate-account`, { accountId: 'acct_2' });
    return id;
  }

  const open = (payer: Client, id: string) => payer.send('POST', `/v3/payments/payables/${id}/open`);
  const isPaid = (payer: Client, id: string) =>
    payer.poll(`/v3/payments/payables/${id}`, ({ status }) => status === 'Paid');

  test('from a new payee to a paid invoice, with an external id on every event of both parties', async () => {
    const payer = platform.as(ACCT_1);
    const [ofPayer] = await platform.subscribe(payer, ['*']);
    const [ofPayee] = await platform.subscribe(platform.as(ACCT_2), ['*']);
    const payeeId = await createPayee(payer);
    const invoiceId = await create(payer, 'invoices', { payeeId, ...MONEY, externalId: 'INV-1' });
    const payableId = await create(payer, 'payables', { payeeId, invoiceId, ...MONEY, externalId: 'BILL-1' });
    const opened = await open(payer, payableId);
    expect([opened.status, opened.body.externalId]).toEqual([202, 'BILL-1']);
    await isPaid(payer, payableId);
    await Promise.all([ofPayer.until('Invoice.Paid'), ofPayee.until('Invoice.Paid')]);
    await ofPayer.until('Operation.Completed');
    const types = ofPayer.received.map(({ type }) => type).sort();
    expect(types).toEqual([
      ...['FundsMovement.Completed', 'FundsMovement.Created', 'FundsMovement.Processing', 'Invoice.Paid'],
      ...['Operation.Completed', 'Operation.Created', 'Payable.Paid', 'Payee.Activated'],
    ]);
    for (const { type, data } of [...ofPayer.received, ...ofPayee.received])
      expect(data.externalId, type).toMatch(/^(vendor|INV|BILL)-1$/);
    expect((await platform.as(ACCT_2).get(`/v3/payments/invoices/${invoiceId}`)).body.status).toBe('Paid');
  });

  test('a payee is activated once, however often its Account is named', async () => {
    const payer = platform.as(ACCT_1);
    const id = await createPayee(payer);
    const associate = async (accountId: string) => {
      const path = `/v3/payments/payees/${id}/associate-account`;
      return (await payer.send('POST', path, { accountId })).body;
    };
    const { body: before } = await payer.get(`/v3/payments/payees/${id}`);
    expect(await Promise.all([associate('acct_2'), associate('acct_2')])).toEqual([before, before]);
    const { body } = await payer.get(`/v3/platform/events?filter[resourceId][eq]=${id}`);
    expect(body.data.map(({ type }) => type)).toEqual(['Payee.Activated']);
    expect(await associate('acct_3')).toMatchObject({ payeeAccountId: 'acct_3' });
  });

  test('a payable that was paid in part can be opened again for its whole amount; one that was returned needs a new payable', async () => {
    const payer = platform.as(ACCT_1);
    const payeeId = await createPayee(payer);
    const id = await create(payer, 'payables', { payeeId, ...MONEY });
    await trigger(payer, 'Payable.PartiallyPaid', { resourceId: id });
    expect((await open(payer, id)).status).toBe(202);
    await isPaid(payer, id);
    await trigger(payer, 'Payable.Returned', { resourceId: id });
    const refused = await open(payer, id);
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'payableId']);
    const again = await create(payer, 'payables', { payeeId, ...MONEY });
    expect((await open(payer, again)).status).toBe(202);
    await isPaid(payer, again);
  });

  test('the other party of a payable and of its invoice is the Account that the payee has when the payable is opened', async () => {
    const payer = platform.as(ACCT_1);
    const payeeId = await create(payer, 'payees', { name: 'Late' });
    const invoiceId = await create(payer, 'invoices', { payeeId, ...MONEY });
    const id = await create(payer, 'payables', { payeeId, invoiceId, ...MONEY });
    await payer.send('POST', `/v3/payments/payees/${payeeId}/associate-account`, { accountId: 'acct_2' });
    await open(payer, id);
    await isPaid(payer, id);
    const typesOf = async (resourceId: string) => {
      const events = await platform
        .as(ACCT_2)
        .walk(`/v3/platform/events?filter[resourceId][eq]=${resourceId}`);
      return events.map(({ type }) => type);
    };
    await expect.poll(() => typesOf(id)).toEqual(['Payable.Paid']);
    await expect.poll(() => typesOf(invoiceId)).toEqual(['Invoice.Paid']);
    for (const path of [`payables/${id}`, `invoices/${invoiceId}`])
      expect((await platform.as(ACCT_2).get(`/v3/payments/${path}`)).status).toBe(200);
  });

  test('a payable refers only to resources of its own Account', async () => {
    const payer = platform.as(ACCT_1);
    const stranger = platform.as(ACCT_3);
    const payeeId = await createPayee(payer);
    const otherPayeeId = await create(payer, 'payees', { name: 'Bruno' });
    const invoiceId = await create(payer, 'invoices', { payeeId, ...MONEY });
    const fieldOf = async (client: Client, body: object) => {
      const answer = await client.send('POST', '/v3/payments/payables', { ...MONEY, ...body });
      return [answer.status, answer.body.errors?.[0]?.field];
    };
    expect(await fieldOf(stranger, { payeeId })).toEqual([422, 'payeeId']);
    expect(await fieldOf(payer, { payeeId: 'payee_none' })).toEqual([422, 'payeeId']);
    expect(await fieldOf(payer, { payeeId: otherPayeeId, invoiceId })).toEqual([422, 'invoiceId']);
    // The payee reads the invoice, but it is the payer's to pay.
    const ownPayee = await create(platform.as(ACCT_2), 'payees', { name: 'Chidi' });
    expect(await fieldOf(platform.as(ACCT_2), { payeeId: ownPayee, invoiceId })).toEqual([422, 'invoiceId']);
    for (const amount of ['-1', '0', '0.00', '000'])
      expect(await fieldOf(payer, { payeeId, amount })).toEqual([422, 'amount']);
    for (const currency of ['ABC', 'XXX', 'eur', 'DEM'])
      expect(await fieldOf(payer, { payeeId, currency })).toEqual([422, 'currency']);
    // Filters refuse the year 0, and many clients cannot read it.
    const early = { payeeId, ...MONEY, dueOn: '0000-12-31' };
    const refused = await payer.send('POST', '/v3/payments/invoices', early);
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'dueOn']);
    await create(payer, 'invoices', { ...early, dueOn: '0001-01-01' });
    expect(await fieldOf(payer, { payeeId, amount: '0.01', currency: 'JPY' })).toEqual([201, undefined]);
  });

  test('an event that is made up without a counterparty reaches one all the same, once it is known', async () => {
    const payer = platform.as(ACCT_1);
    await create(payer, 'payables', { payeeId: await createPayee(payer), ...MONEY });
    const [ofPayer] = await platform.subscribe(payer, ['Invoice.Returned']);
    const [ofPayee] = await platform.subscribe(platform.as(ACCT_2), ['Invoice.Returned']);
    await trigger(payer, 'Invoice.Returned');
    const [[one], [other]] = await Promise.all([
      ofPayer.until('Invoice.Returned'),
      ofPayee.until('Invoice.Returned'),
    ]);
    expect(one?.occurrenceId).toBe(other?.occurrenceId);
    const body = { type: 'Invoice.Returned', counterpartyAccountId: 'acct_1' };
    expect((await payer.send('POST', '/v3/platform/event-triggers', body)).status).toBe(422);
  });
});
