import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../../fixtures/log-lines.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startSettling } from '../../fixtures/settling.ts';
import { SharedSettling } from './shared-settling.ts';

const shared = new SharedSettling();

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';

const JSON_TYPE = { 'Content-Type': 'application/json' };

describe('a request reserves', () => {
  it.each([
    ['what its body says', '{"max_tokens":812}', {}, 812],
    ['what its body says, rounded up', '{"max_tokens":811.2}', {}, 812],
    ['the most at most', '{"max_tokens":32001}', {}, 32_000],
    ['the most at most', '{"max_tokens":1e400}', {}, 32_000],
    ['the cost if it is not there', '{"prompt":"max_tokens"}', {}, 4_000],
    ['the cost if it is null', '{"max_tokens":null}', {}, 4_000],
    ['the cost if it is no number', '{"max_tokens":"812"}', {}, 4_000],
    ['the cost if it is negative', '{"max_tokens":-1}', {}, 4_000],
    ['the cost if it is 0', '{"max_tokens":-0}', {}, 4_000],
    ['the cost if it is elsewhere', '{"x":{"max_tokens":1}}', {}, 4_000],
    ['the cost if it is elsewhere', '[{"max_tokens":1}]', {}, 4_000],
    ['the cost without a body', undefined, {}, 4_000],
    ['the most if the upstream may read another number', '{"max_tokens":1,"max_tokens":9000}', {}, 32_000],
    ['the most if the upstream may read another number', '{"max_tokens":9000}{"max_tokens":1}', {}, 32_000],
    ['the most if the upstream may read another number', '{"max_tokens":1,}', {}, 32_000],
    [
      'the most if it is encoded',
      gzipSync('{"max_tokens":1}').toString('latin1'),
      { 'Content-Encoding': 'gzip' },
      32_000,
    ],
  ])('%s: %s', async (_, body, headers, cost) => {
    let received = '';
    shared.answer = (response, request) => {
      request.setEncoding('utf8').on('data', (text: string) => {
        received += text;
      });
      request.on('end', () => response.end());
    };
    const sent = body === undefined ? {} : { body };
    expect(
      (await shared.gateway.send('POST', '/reserve', { ...sent, headers: { ...JSON_TYPE, ...headers } }))
        .status,
    ).toBe(200);
    expect(await shared.lastCost()).toEqual({ cost });
    if (!('Content-Encoding' in headers)) expect(received).toBe(body ?? '');
  });
});

it('a body in chunks is read, and reaches the upstream as it is', async () => {
  const received: Buffer[] = [];
  shared.answer = (response, request) => {
    request.on('data', (chunk: Buffer) => received.push(chunk)).on('end', () => response.end('done'));
  };
  const body = `{"prompt":"${'größer '.repeat(10_000)}","max_tokens":5}`;
  const sent = request(`${shared.gateway.url}/reserve`, {
    method: 'POST',
    headers: { Authorization: 'Bearer service' },
  });
  const answered = new Promise((resolve) =>
    sent.on('response', (response) => response.resume().on('end', resolve)),
  );
  for (let from = 0; from < body.length; from += 9_000) sent.write(body.slice(from, from + 9_000));
  sent.end();
  await answered;
  expect(Buffer.concat(received).toString()).toBe(body);
  expect(await shared.lastCost()).toEqual({ cost: 5 });
});

describe('a body above operations.maxBodyBytes', () => {
  const BODY = '{"max_tokens":5,"prompt":"long"}';
  const options = { operations: { maxBodyBytes: 20 } };

  it('is not read if it has a length: it reserves the most, and reaches the upstream', async () => {
    const gateway = await startSettling(options);
    gateway.answer = (response, request) => void request.pipe(response);
    expect(await (await gateway.send('POST', '/reserve', { body: BODY })).text()).toBe(BODY);
    expect(await gateway.costOf()).toEqual({ cost: 32_000 });
  });

  it('is refused with a 413 and costs nothing if it has none', async () => {
    const gateway = await startSettling(options);
    const client = await connectRaw(gateway.url);
    const chunks = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
    client.write(`POST /reserve HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunks}`);
    let text = '';
    for await (const chunk of client) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text).not.toContain('RateLimit');
    expect(gateway.upstream.seen).toEqual([]);
    await gateway.costOf();
    expect(gateway.lines.join()).not.toContain('chargedAtUs');
  });
});

it.each([
  ['leaves', 400, (client: Socket) => client.destroy()],
  ['resets its connection', 0, (client: Socket) => client.resetAndDestroy()],
])('a client that %s within its body is not charged, and is refused', async (_, status, leave) => {
  const gateway = await startSettling();
  const client = await connectRaw(gateway.url);
  const expecting = `${HEAD}Expect: 100-continue\r\nContent-Length: 100\r\n`;
  client.on('error', () => {}).write(`POST /reserve HTTP/1.1\r\n${expecting}\r\n{`);
  // The body is being read.
  await once(client, 'data');
  leave(client);
  await gateway.costOf();
  const [line] = linesOf(gateway, 'request');
  expect(line).toMatchObject({ outcome: 'refused', reason: 'BadRequest', status });
  expect(line).not.toHaveProperty('chargedAtUs');
  expect(await gateway.metrics()).not.toMatch(/^weir_requests_total\{.*outcome="free"\} [1-9]/m);
  expect(gateway.upstream.seen).toEqual([]);
});
