import { expect, it, onTestFinished } from 'vitest';
import { PROTOCOLS } from '../fixtures/decisions.ts';
import { startGateway } from '../fixtures/gateway.ts';

const SMALL = { Authorization: 'Bearer lonely' };
const HOST = '127.0.0.1';

it.each([
  ['decisions.host and decisions.port', { host: HOST, port: 0, trusted: ['127.0.0.1/32'] }],
  ['decisions.listen', { listen: { host: HOST, port: 0 }, trusted: ['127.0.0.1/32'] }],
])('%s open the port, and decisions.deniedStatus reports a 429', async (_, decisions) => {
  const gateway = await startGateway({
    settings: { decisions: { ...decisions, deniedStatus: 403 } },
    limits: { accounts: { acct_3: { 'account-write': 10 } } },
  });
  onTestFinished(() => gateway.close());
  const sent = [];
  for (const ask of [PROTOCOLS['ext-authz'], PROTOCOLS['forward-auth'], PROTOCOLS['auth-request']]) {
    for (let count = 0; count < 2; count++) {
      sent.push(await ask?.(gateway.decisionsUrl, 'POST', '/v3/reports', SMALL));
    }
  }
  expect(sent.map((answer) => answer?.status)).toEqual([200, 403, 403, 403, 403, 403]);
  for (const answer of sent.slice(1)) {
    expect(answer?.headers).toMatchObject({ 'x-weir-status': '429', 'retry-after': expect.any(String) });
    expect(JSON.parse(`${answer?.headers['x-weir-problem']}`)).toMatchObject({
      status: 429,
      code: 'RateLimitExceeded',
    });
  }
  const foreign = { ...SMALL, 'X-Service-Account': 'acct_1' };
  const refused = await PROTOCOLS['ext-authz']?.(gateway.decisionsUrl, 'GET', '/v3/things', foreign);
  expect(refused).toMatchObject({
    status: 403,
    headers: expect.not.objectContaining({ 'x-weir-status': '403' }),
  });
});
