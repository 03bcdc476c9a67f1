import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sendRaw } from '../../fixtures/raw.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ limits: PLENTY });
});
afterAll(() => gateway.close());

const TOKEN = 'Authorization: Bearer person';

it.each([
  [
    'X-Service-Account twice',
    `Host: weir\r\n${TOKEN}\r\nX-Service-Account: acct_1\r\nX-Service-Account: acct_2`,
  ],
  [
    'X-Service-Account twice, spelt apart',
    `Host: weir\r\n${TOKEN}\r\nx-service-account: acct_1\r\nX-SERVICE-ACCOUNT: acct_1`,
  ],
  ['an empty X-Service-Account', `Host: weir\r\n${TOKEN}\r\nX-Service-Account:`],
  ['an X-Service-Account of white space', `Host: weir\r\n${TOKEN}\r\nX-Service-Account: \t `],
  ['an endless X-Service-Account', `Host: weir\r\n${TOKEN}\r\nX-Service-Account: ${'a'.repeat(300)}`],
  ['Authorization twice', `Host: weir\r\n${TOKEN}\r\n${TOKEN}`],
  ['a second Authorization of another token', `Host: weir\r\n${TOKEN}\r\nAuthorization: Bearer other`],
  ['Host twice', `Host: weir\r\nHost: weir\r\n${TOKEN}`],
  ['an invalid Host', `Host: we/ir\r\n${TOKEN}`],
  ['a Host with credentials', `Host: user@weir\r\n${TOKEN}`],
  ['a method override', `Host: weir\r\n${TOKEN}\r\nX-HTTP-Method-Override: DELETE`],
  ['a method override by another name', `Host: weir\r\n${TOKEN}\r\nX-Method-Override: DELETE`],
  ['a method override by a third name', `Host: weir\r\n${TOKEN}\r\nX-HTTP-Method: DELETE`],
])('%s is refused before anything is charged', async (_, fields) => {
  const seen = gateway.upstream.seen.length;
  const answer = await sendRaw(
    gateway.url,
    `POST /v3/things HTTP/1.1\r\n${fields}\r\nConnection: close\r\n\r\n`,
  );
  expect(answer.statuses).toEqual([400]);
  expect(answer.text).toContain('"code":"BadRequest"');
  expect(answer.text).toMatch(/^Cache-Control: no-store\r$/m);
  expect(answer.text).not.toContain('RateLimit');
  expect(gateway.upstream.seen).toHaveLength(seen);
});

it('a list of Accounts, different letter case or white space is not a known Account', async () => {
  for (const account of ['acct_1, acct_2', 'ACCT_1', 'acct_1 acct_2', 'acct_1,acct_1']) {
    const answer = await gateway.send('GET', '/v3/things', { token: 'person', account });
    expect(answer.status, account).toBe(403);
  }
});

it('white space around an Account is not part of it', async () => {
  const answer = await sendRaw(
    gateway.url,
    `GET /v3/things HTTP/1.1\r\nHost: weir\r\n${TOKEN}\r\nX-Service-Account: \t acct_2 \t\r\nConnection: close\r\n\r\n`,
  );
  expect(answer.statuses).toEqual([200]);
  expect(gateway.upstream.seen.at(-1)?.headers).toMatchObject({
    'x-account-id': 'acct_2',
    'x-service-account': 'acct_2',
  });
});
