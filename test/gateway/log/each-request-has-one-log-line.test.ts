import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendTo, startGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

/** Until what was sent has been read; less than a short body is waited for. */
const READ_MS = 10;

let upstream: TestUpstream;
let weir: WeirProcess;
beforeAll(async () => {
  upstream = await startUpstream();
  weir = await startWeir({ upstreamUrl: upstream.url });
});
afterAll(async () => {
  await weir.close();
  await upstream.close();
});

async function lineOf(requestId: string): Promise<Record<string, unknown>> {
  const find = () => weir.lines.filter((line) => line.includes(requestId));
  await expect.poll(find).toHaveLength(1);
  return JSON.parse(find()[0] ?? '{}') as Record<string, unknown>;
}

it('an admitted request is logged with its charge and the duration of each part', async () => {
  const headers = { 'X-Request-Id': 'admitted-1', Cookie: 'secret-cookie' };
  await sendTo(weir.url, 'POST', '/v3/reports?token=secret-query', {
    token: 'person',
    account: 'acct_2',
    headers,
  });
  expect(await lineOf('admitted-1')).toMatchObject({
    requestId: 'admitted-1',
    method: 'POST',
    path: '/v3/reports',
    operation: 'reportWrite',
    account: 'acct_2',
    organization: 'org_1',
    principal: 'person_1',
    kind: 'write',
    cost: 7,
    outcome: 'admitted',
    chargedAtUs: expect.any(Number),
    status: 200,
    upstreamStatus: 200,
    chargeMs: expect.any(Number),
    upstreamMs: expect.any(Number),
    totalMs: expect.any(Number),
  });
});

it('the time of the charge lies between the arrival of the request and its log line', async () => {
  const beforeMs = Date.now();
  await sendTo(weir.url, 'GET', '/v3/things', { headers: { 'X-Request-Id': 'charged-1' } });
  const { chargedAtUs, time } = await lineOf('charged-1');
  const clockToleranceMs = 10;
  expect(Number(chargedAtUs) / 1000).toBeGreaterThanOrEqual(beforeMs - clockToleranceMs);
  expect(Number(chargedAtUs) / 1000).toBeLessThanOrEqual(Number(time) + clockToleranceMs);
  expect(Number.isSafeInteger(chargedAtUs)).toBe(true);
});

it('a refused request is logged with the reason', async () => {
  const headers = { 'X-Request-Id': 'refused-1' };
  await sendTo(weir.url, 'GET', '/v3/things', { token: 'made-up-token', headers });
  expect(await lineOf('refused-1')).toMatchObject({
    outcome: 'refused',
    reason: 'unknown-token',
    status: 401,
  });
});

it('no token, cookie or query is ever written', async () => {
  await lineOf('admitted-1');
  await lineOf('refused-1');
  expect(weir.lines.join('\n')).not.toMatch(/secret|Bearer|made-up-token/);
});

it('a new shape of unlisted path is logged once', async () => {
  for (const id of ['a1', 'b2', 'c3']) await sendTo(weir.url, 'GET', `/v3/unknown/${id}`);
  await sendTo(weir.url, 'GET', '/v3/things', { headers: { 'X-Request-Id': 'after-unlisted' } });
  await lineOf('after-unlisted');
  const shapes = weir.lines.filter((line) => line.includes('unlisted operation'));
  expect(shapes.map((line) => (JSON.parse(line) as { shape: string }).shape)).toEqual(['GET /v3/unknown/{}']);
  const metrics = await (await fetch(`${weir.adminUrl}/metrics`)).text();
  expect(metrics).toContain('weir_unlisted_operations_total{method="GET"} 3');
  expect(metrics).toMatch(/weir_requests_read_total\{reader="edge"\} [1-9]/);
});

it('a response that is refused has its reason in the line, and none in the answer', async () => {
  const malformed = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na';
  const behind = await startTcpUpstream((socket) => socket.once('data', () => socket.write(malformed)));
  const settings = { log: { level: 'info', access: true }, upstream: { url: behind.url } };
  const doubtful = await startGateway({ settings });
  try {
    const headers = { 'X-Request-Id': 'doubtful-1' };
    const answer = await sendTo(doubtful.url, 'GET', '/v3/things', { headers });
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toMatch(/Content-Length|MALFORMED/);
    const find = () => doubtful.lines.filter((line) => line.includes('doubtful-1'));
    await expect.poll(find).toHaveLength(1);
    expect(JSON.parse(find()[0] ?? '{}')).toMatchObject({
      status: 503,
      reason: 'ServiceUnavailable',
      upstreamError: 'UPSTREAM_MALFORMED',
      upstreamErrorDetail: 'Content-Length twice',
    });
  } finally {
    await doubtful.close();
    await behind.close();
  }
});

it('a body that its client breaks off is no error of the upstream', async () => {
  const behind = await startUpstream((request, response) => request.resume().on('end', () => response.end()));
  const gateway = await startGateway({
    upstream: behind,
    settings: { log: { level: 'info', access: true }, upstream: { url: behind.url } },
  });
  try {
    const head = 'POST /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n';
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`);
    await expect.poll(() => behind.seen.length).toBe(1);
    socket.write('no size\r\n');
    expect((await answer).statuses).toEqual([400]);
    await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(1);
    const [line] = linesOf(gateway, 'request');
    expect(line).toMatchObject({ outcome: 'admitted', status: 400, reason: 'BadRequest' });
    expect(line).not.toHaveProperty('upstreamError');
  } finally {
    await gateway.close();
  }
});

it.each([
  ['short', 10],
  ['long', 100_000],
])('an upload that is reset before it has arrived has a line, also a %s one', async (name, length) => {
  const fields = 'Host: weir\r\nAuthorization: Bearer service\r\n';
  const id = `reset-${name}`;
  const socket = await connectRaw(weir.url);
  socket.write(`GET /v3/things HTTP/1.1\r\n${fields}\r\n`);
  await once(socket, 'data');
  socket.write(
    `POST /v3/things HTTP/1.1\r\n${fields}X-Request-Id: ${id}\r\nContent-Length: ${length}\r\n\r\nhalf`,
  );
  await setTimeout(READ_MS);
  socket.resetAndDestroy();
  expect(await lineOf(id)).toMatchObject({ method: 'POST' });
});

it.each([
  ['1.1', 'its client left', {}],
  ['1.0', 'its client left', {}],
  ['1.1', 'the upstream broke it off', { upstreamError: 'UPSTREAM_CLOSED' }],
  ['1.0', 'the upstream broke it off', { upstreamError: 'UPSTREAM_CLOSED' }],
] as const)(
  'a response of HTTP/%s is incomplete when %s, and others are not',
  async (version, cause, error) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n';
    const behind = await startTcpUpstream((socket, count) => {
      socket.once('data', () => socket.write(count === 1 ? `${head}half` : `${head}complete`));
      if (count === 1 && 'upstreamError' in error) socket.once('data', () => socket.end());
    });
    const gateway = await startGateway({
      upstream: behind,
      settings: { log: { level: 'info', access: true }, upstream: { url: behind.url } },
    });
    try {
      const request = `GET /v3/things HTTP/${version}\r\nHost: weir\r\nAuthorization: Bearer service\r\n\r\n`;
      const client = (await connectRaw(gateway.url)).on('error', () => {});
      client.once('data', () => cause === 'its client left' && client.destroy());
      client.write(request);
      await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(1);
      (await connectRaw(gateway.url)).resume().write(request);
      await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(2);
      const [cut, whole] = linesOf(gateway, 'request');
      expect(cut).toMatchObject({ status: 200, incomplete: true, ...error });
      if (!('upstreamError' in error)) expect(cut).not.toHaveProperty('upstreamError');
      expect(whole).not.toHaveProperty('incomplete');
    } finally {
      await gateway.close();
    }
  },
);
