import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, type Body, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const isEnded = ({ status }: Body) => status !== 'Pending';

describe.each(databases)('on $name', (database) => {
  const platform = usePlatform(database);

  test('opening a payable is accepted, completes, and pays once even if requested several times', async () => {
    const client = platform.as(ACCT_1);
    const [payer] = await platform.subscribe(client, [
      'FundsMovement.Completed',
      'Payable.Paid',
      'Operation.*',
    ]);
    const [payee] = await platform.subscribe(platform.as(ACCT_2), ['Payable.Paid']);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.send('POST', '/v3/payments/payables/payable_1001/open')),
    );
    for (const { status, body } of answers) {
      expect([status, body.status]).toEqual([202, 'Pending']);
      const ended = await client.poll(`/v3/platform/operations/${body.id}`, isEnded);
      expect([ended.status, ended.result.payableId]).toEqual(['Completed', 'payable_1001']);
    }
    await Promise.all([
      payer.until('Payable.Paid'),
      payee.until('Payable.Paid'),
      payer.until('Operation.Completed', 5),
    ]);
    await payer.until('FundsMovement.Completed');
    expect(payer.received.filter(({ type }) => type === 'Payable.Paid').length).toBe(1);
    const { body: payable } = await client.get('/v3/payments/payables/payable_1001');
    expect(payable.status).toBe('Paid');
    expect(Object.keys(payable.events)).toEqual(expect.arrayContaining(['createdAt', 'openAt', 'paidAt']));
  });

  test('a bulk dismissal completes, completes in part, or fails with an error', async () => {
    const client = platform.as(ACCT_1);
    const [account] = await platform.subscribe(client, ['Operation.*']);
    const [person] = await platform.subscribe(client, ['Notification.Dismissed'], { scope: 'Person' });
    const dismiss = async (notificationIds: string[]) => {
      const { status, body } = await client.send('POST', '/v3/platform/notifications/bulk-dismiss', {
        notificationIds,
      });
      expect(status).toBe(202);
      return client.poll(`/v3/platform/operations/${body.id}`, isEnded);
    };
    expect(await dismiss(['notification_1001', 'notification_1002'])).toMatchObject({ status: 'Completed' });
    const partial = await dismiss(['notification_1003', 'notification_2001']);
    expect(partial).toMatchObject({
      status: 'PartiallyCompleted',
      result: {
        succeeded: ['notification_1003'],
        failed: [{ id: 'notification_2001', code: 'ResourceNotFound' }],
      },
    });
    const failed = await dismiss(['nothing']);
    expect(failed).toMatchObject({ status: 'Failed', error: { code: 'ResourceNotFound' } });
    await account.until('Operation.PartiallyCompleted');
    await account.until('Operation.Failed');
    await person.until('Notification.Dismissed', 3);
  });

  test('a Returned payable is final: it is neither opened nor paid', async () => {
    const client = platform.as(ACCT_1);
    const id = await trigger(client, 'Payable.Returned');
    expect((await client.send('POST', `/v3/payments/payables/${id}/open`)).status).toBe(422);
    const body = { type: 'Payable.Paid', resourceId: id };
    const paid = await client.send('POST', '/v3/platform/event-triggers', body);
    expect([paid.status, paid.body.code]).toEqual([422, 'ValidationError']);
    expect(paid.body.errors.map(({ field }) => field)).toEqual(['resourceId']);
    expect((await client.get(`/v3/payments/payables/${id}`)).body.status).toBe('Returned');
  });

  test('a triggered payable keeps its other party when it is opened, because its payee is an example of another Account', async () => {
    const client = platform.as(ACCT_2);
    const id = await trigger(client, 'Payable.PartiallyPaid', { counterpartyAccountId: 'acct_3' });
    await client.send('POST', `/v3/payments/payables/${id}/open`);
    const paid = await client.poll(`/v3/payments/payables/${id}`, ({ status }) => status === 'Paid');
    expect(paid.counterpartyAccountId).toBe('acct_3');
  });

  test('the same Idempotency-Key and body give the same answer, and act once', async () => {
    const client = platform.as(ACCT_1);
    const key = { 'idempotency-key': 'session-1' };
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => client.send('POST', '/v3/platform/sessions', { ttlSeconds: 60 }, key)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(201));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    const log = await client.walk('/v3/platform/audit-logs');
    expect(log.filter(({ operation }) => operation === 'createSession').length).toBe(1);
  });

  test('no body and an empty object are the same request for an Idempotency-Key', async () => {
    const client = platform.as(ACCT_1);
    const send = (key: string, path: string, body?: object) =>
      client.send('POST', path, body, { 'idempotency-key': key });
    const open = '/v3/payments/payables/payable_1002/open';
    for (const [key, path] of [
      ['open-2', open],
      ['session-3', '/v3/platform/sessions'],
    ] as const) {
      const first = await send(key, path);
      for (const body of [{}, undefined]) {
        const again = await send(key, path, body);
        expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([first.status, 'true']);
      }
    }
    await send('open-3', open, {});
    expect((await send('open-3', open)).headers.get('idempotency-replayed')).toBe('true');
    expect((await send('session-3', '/v3/platform/sessions', { ttlSeconds: 60 })).status).toBe(422);
  });

  test('the same Idempotency-Key with another body or operation is 422 naming it; another Account has its own', async () => {
    const client = platform.as(ACCT_1);
    const key = { 'idempotency-key': 'session-2' };
    expect((await client.send('POST', '/v3/platform/sessions', { ttlSeconds: 60 }, key)).status).toBe(201);
    const other = await client.send('POST', '/v3/platform/sessions', { ttlSeconds: 61 }, key);
    expect([other.status, other.body.errors[0]?.field]).toEqual([422, 'Idempotency-Key']);
    const elsewhere = await client.send('POST', '/v3/payments/payables/payable_1002/open', undefined, key);
    expect(elsewhere.status).toBe(422);
    const stranger = platform.as(ACCT_2);
    expect((await stranger.send('POST', '/v3/platform/sessions', { ttlSeconds: 61 }, key)).status).toBe(201);
  });

  test('a refused write leaves its Idempotency-Key unused', async () => {
    const client = platform.as(ACCT_1);
    const key = { 'idempotency-key': 'open-1' };
    expect(
      (await client.send('POST', '/v3/payments/payables/payable_9999/open', undefined, key)).status,
    ).toBe(404);
    expect(
      (await client.send('POST', '/v3/payments/payables/payable_1003/open', undefined, key)).status,
    ).toBe(202);
  });

  test('a tax form is submitted and a vault file is kept, each with its timestamp', async () => {
    const client = platform.as(ACCT_1);
    const form = await client.send('POST', '/v3/compliance/tax-forms/taxform_1001/submit');
    expect([form.status, form.body.status, typeof form.body.events.submittedAt]).toEqual([
      200,
      'Submitted',
      'string',
    ]);
    const [receiver] = await platform.subscribe(client, ['VaultFile.*']);
    const file = await client.send('POST', '/v3/compliance/vault-files', {
      name: 'w9.pdf',
      externalId: 'doc-7',
    });
    expect(file.status).toBe(201);
    await client.send('PATCH', `/v3/compliance/vault-files/${file.body.id}`, { name: 'w9-signed.pdf' });
    const [updated] = await receiver.until('VaultFile.Updated');
    expect(updated?.data).toMatchObject({ id: file.body.id, externalId: 'doc-7' });
  });

  test('concurrent transitions of one resource all set their timestamps', async () => {
    const client = platform.as(ACCT_1);
    const resourceId = await trigger(client, 'BackgroundCheck.Created');
    const parts = ['Sent', 'Submitted', 'Completed', 'Failed'];
    await Promise.all(parts.map((part) => trigger(client, `BackgroundCheck.${part}`, { resourceId })));
    const answer = await client.send('POST', '/v3/platform/event-triggers', {
      type: 'BackgroundCheck.Created',
      resourceId,
    });
    expect(Object.keys(answer.body.resource.events).sort()).toEqual([
      'completedAt',
      'createdAt',
      'failedAt',
      'sentAt',
      'submittedAt',
    ]);
  });
});
