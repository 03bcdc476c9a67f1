import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { newCertificate } from '../fixtures/certificate.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { runWeirHere } from '../fixtures/run-here.ts';

/** Every command that asks an admin port. */
const COMMANDS = [
  ['limit', 'list'],
  ['limit', 'set', 'acct_1', 'account-read=5', '--why', 'x'],
  ['limit', 'unset', 'acct_1', '--why', 'x'],
  ['limit', 'block', 'acct_1', '--why', 'x'],
  ['limit', 'unblock', 'acct_1', '--why', 'x'],
  ['usage', 'acct_1'],
  ['usage', 'acct_1', '--period', '2026-11'],
  ['find', 'acct_1'],
  ['why', 'request-1'],
  ['changes'],
  ['top', '--once'],
  ['top', '--json'],
  ['health'],
];

afterEach(() => {
  vi.restoreAllMocks();
});

/** A server that is no gateway. @returns its URL */
async function startOther(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const failed = (stderr: string) => ({ code: 1, stdout: '', stderr: `${stderr}\n` });

const notAdmin = (url: string) =>
  failed(`${url} answered, but not as an admin port of Weir does. Is it the address of the admin port?`);

describe.each(['{"ok":true}', '[]', '[{}]', 'null', '"text"', '<html>Hello</html>', ''])(
  'a server that answers %j to everything',
  (body) => {
    it.each(COMMANDS)('is no admin port to weir %s %s', async (...command) => {
      const url = await startOther((_request, response) => response.setHeader('Age', 60).end(body));
      expect(await runWeirHere([...command, '--url', url])).toEqual(notAdmin(url));
    });
  },
);

it('a 404 in another form is not from an admin port, and a proxy may answer a 502', async () => {
  const url = await startOther(({ url: path = '' }, response) => {
    response.statusCode = path.startsWith('/find') ? 502 : 404;
    response.end('<html>No</html>');
  });
  expect(await runWeirHere(['changes', '--url', url])).toEqual(notAdmin(url));
  expect(await runWeirHere(['find', 'acct_1', '--url', url])).toEqual(failed(`${url} answered 502.`));
});

it('an empty list of a gateway is believed', async () => {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  const list = await runWeirHere(['limit', 'list', '--url', gateway.adminUrl]);
  expect(list).toEqual({
    code: 0,
    stdout: 'There are no live limits, and nothing is blocked.\n',
    stderr: '',
  });
});

describe('the token', () => {
  const TOKEN = 'a-long-admin-token';

  it.each([`${TOKEN}\n`, `a ${TOKEN}`, `${TOKEN}\u0308`, `${TOKEN}\u007f`])(
    '%j cannot be sent, and nothing is',
    async (token) => {
      const received = vi.fn();
      const url = await startOther(received);
      expect(await runWeirHere(['changes', '--url', url], { WEIR_ADMIN_TOKEN: token })).toEqual(
        failed(
          'The token of WEIR_ADMIN_TOKEN has a character that no header can have within a token, such as a space or a line end. Nothing was sent.',
        ),
      );
      expect(received).not.toHaveBeenCalled();
    },
  );

  it('is asked for if none was sent, and if it was refused, the error says where it came from', async () => {
    const admin = { host: '127.0.0.1', port: 0, token: TOKEN };
    const gateway = await startGateway({ settings: { admin } });
    onTestFinished(() => gateway.close());
    const run = (env: NodeJS.ProcessEnv) => runWeirHere(['changes', '--url', gateway.adminUrl], env);
    const answered = `${gateway.adminUrl} answered 401: `;
    expect(await run({})).toEqual(
      failed(
        `${answered}Send the admin token as Authorization: Bearer. No token was sent: set WEIR_ADMIN_TOKEN or WEIR_ADMIN_TOKEN_FILE.`,
      ),
    );
    expect(await run({ WEIR_ADMIN_TOKEN: `${TOKEN}-2` })).toEqual(
      failed(
        `${answered}The admin token is wrong: this gateway has another one. The token came from WEIR_ADMIN_TOKEN.`,
      ),
    );
    expect(await run({ WEIR_ADMIN_TOKEN: TOKEN })).toMatchObject({ code: 0, stderr: '' });
  });
});

it.each([
  ['before an answer', () => undefined],
  ['within an answer', (_request, response) => response.write('[')],
] satisfies [string, RequestListener][])(
  'a server that hangs %s did not answer in time',
  async (_when, hang) => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 50));
    const url = await startOther(hang);
    expect(await runWeirHere(['changes', '--url', url])).toEqual(
      failed(`${url} did not answer within 15 s. Is it the admin port of a running gateway?`),
    );
  },
);

it('an http port that is asked by https does not speak TLS', async () => {
  const url = (await startOther((_request, response) => response.end('[]'))).replace('http:', 'https:');
  expect(await runWeirHere(['changes', '--url', url])).toEqual(
    failed(
      `${url} does not answer: it does not speak TLS, so its URL may have to begin with http:. Is it the admin port of a running gateway?`,
    ),
  );
});

it('an authority that is not known is to be named with --ca', async () => {
  const { certFile, keyFile } = newCertificate();
  const pair = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  const server = createTlsServer(pair, (_request, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { code, stderr } = await runWeirHere(['changes', '--url', url]);
  expect(code).toBe(1);
  expect(stderr).toContain(`${url} has a certificate that is not accepted (`);
  expect(stderr).toContain('): name its authority with --ca. ');
});
