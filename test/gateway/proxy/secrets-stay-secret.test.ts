import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY, writeConfiguration } from '../../fixtures/configuration.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { runWeirHere } from '../../fixtures/run-here.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

/** Each is written where a secret is; none may be read anywhere else. */
const SECRETS = [
  's3cret-token',
  's3cret-cookie',
  's3cret-query',
  's3cret-body',
  's3cret-password',
  's3cret-upstream',
];
const HEAD = 'Host: weir\r\nCookie: session=s3cret-cookie\r\nProxy-Authorization: Basic s3cret-token\r\n';

const AUTHORIZED = `${HEAD}Authorization: Bearer service\r\n`;
const UNKNOWN = `${HEAD}Authorization: Bearer s3cret-token\r\n`;

let upstream: TestUpstream;
let weir: WeirProcess;
const words: string[] = [];
beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    if (request.url?.includes('reset')) request.socket.destroy();
    else response.end('fine');
  });
  weir = await startWeir({
    upstreamUrl: upstream.url,
    limits: PLENTY,
    settings: { log: { level: 'trace', access: true }, shutdown: { drainDelaySeconds: 0, graceSeconds: 1 } },
    // Nothing listens there, so that failures of the store are reported too.
    store: { kind: 'redis', url: 'redis://127.0.0.1:1', username: 'user', password: 's3cret-password' },
  });
});
afterAll(() => upstream.close());

describe('with the log at its most talkative', () => {
  it.each([
    [
      'a served request',
      `GET /v3/things?key=s3cret-query HTTP/1.1\r\n${AUTHORIZED}Connection: close\r\n\r\n`,
    ],
    ['an unknown token', `GET /v3/things?key=s3cret-query HTTP/1.1\r\n${UNKNOWN}Connection: close\r\n\r\n`],
    [
      'a token in another scheme',
      `GET /v3/things HTTP/1.1\r\n${HEAD}Authorization: Basic s3cret-token\r\nConnection: close\r\n\r\n`,
    ],
    [
      'an operation that is not listed',
      `GET /v3/none?key=s3cret-query HTTP/1.1\r\n${AUTHORIZED}Connection: close\r\n\r\n`,
    ],
    ['a path that is refused', `GET /v3//x?key=s3cret-query HTTP/1.1\r\n${UNKNOWN}Connection: close\r\n\r\n`],
    ['broken HTTP', `GET /v3/things?key=s3cret-query HTTP/1.1\r\n${UNKNOWN}s3cret-body\r\n\r\n`],
    [
      'broken chunks',
      `POST /v3/things HTTP/1.1\r\n${AUTHORIZED}Transfer-Encoding: chunked\r\n\r\ns3cret-body\r\n`,
    ],
    [
      'an upstream that resets',
      `POST /v3/reset HTTP/1.1\r\n${AUTHORIZED}Content-Length: 11\r\nConnection: close\r\n\r\ns3cret-body`,
    ],
    [
      'an invalid request id',
      `GET /v3/things HTTP/1.1\r\n${AUTHORIZED}X-Request-Id: s3cret-token!\r\nConnection: close\r\n\r\n`,
    ],
  ])('%s reveals no secret to the client', async (_, bytes) => {
    const answer = await sendRaw(weir.url, bytes);
    expect(answer.statuses).toHaveLength(1);
    for (const secret of SECRETS) expect(answer.text).not.toContain(secret);
    words.push(answer.text);
  });

  it('neither log nor metrics contain one', async () => {
    words.push(await (await fetch(`${weir.adminUrl}/metrics`)).text());
    const ended = once(weir.process, 'exit');
    await weir.close();
    await ended.catch(() => {});
    const log = weir.lines.join('\n');
    expect(log).toContain('"path":"/v3/things"');
    expect(log).toContain('"status":401');
    for (const secret of SECRETS) expect(words.join('\n') + log, secret).not.toContain(secret);
  });
});

it('weir check reports problems without revealing secrets', async () => {
  const file = await writeConfiguration({
    upstreamUrl: 'http://user:s3cret-upstream@127.0.0.1:1',
    store: {
      kind: 'redis',
      url: 'redis://user:s3cret-password@',
      password: 's3cret-password',
      deadlineMs: 'soon',
    },
    settings: { surprise: 1 },
  });
  const { code, stdout, stderr } = await runWeirHere(['check', '--config', file], {
    WEIR_REDIS_URL: 'redis:/s3cret-password',
  });
  expect(code).toBe(1);
  expect(stderr).toContain('surprise');
  for (const secret of SECRETS) expect(stdout + stderr, secret).not.toContain(secret);
});
