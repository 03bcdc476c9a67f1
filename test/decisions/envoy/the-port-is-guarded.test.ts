import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import { credentials, status } from '@grpc/grpc-js';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { newAuthority } from '../../fixtures/certificate.ts';
import {
  codesOf,
  connect,
  headersOf,
  type RateLimitGateway,
  startRateLimitService,
} from '../../fixtures/rate-limit-service.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';

const RULES = `
domain: test
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: banned
    rate_limit: { unit: hour, requests_per_unit: 0 }
`;
const USER = { descriptors: [{ entries: { user: 'a' } }] };

async function start(...args: Parameters<typeof startRateLimitService>): Promise<RateLimitGateway> {
  const service = await startRateLimitService(...args);
  onTestFinished(() => service.close());
  return service;
}

describe('a peer', () => {
  it('that is not trusted is disconnected, and spends nothing', async () => {
    const { url } = await start([RULES], { decisions: { trusted: ['192.0.2.0/24'] } });
    const socket = await connectRaw(url);
    await once(socket, 'close');
    const stranger = connect(url);
    onTestFinished(() => stranger.close());
    await expect(stranger.ask(USER)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  it('must show a certificate where the port asks for one', async () => {
    const authority = newAuthority();
    const tls = { ...authority.issue('/CN=weir'), clientCaFile: authority.certFile };
    const { url } = await start([RULES], { decisions: { tls } });
    expect(url).toMatch(/^https:/);
    const [root, proxy] = [readFileSync(authority.certFile), authority.issue('/CN=envoy')];
    const options = { 'grpc.ssl_target_name_override': 'localhost' };
    const insecure = { checkServerIdentity: () => undefined };
    const known = connect(
      url,
      credentials.createSsl(root, readFileSync(proxy.keyFile), readFileSync(proxy.certFile), insecure),
      options,
    );
    const unknown = connect(url, credentials.createSsl(root, null, null, insecure), options);
    onTestFinished(() => [known, unknown].forEach((one) => void one.close()));
    expect(codesOf(await known.ask(USER))).toEqual(['OK', 'OK']);
    await expect(unknown.ask(USER)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  it('cannot send a message of more than 64 KiB', async () => {
    const { ask } = await start([RULES]);
    const asking = ask({ descriptors: [{ entries: { user: 'x'.repeat(70_000) } }] });
    await expect(asking).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(codesOf(await ask(USER))).toEqual(['OK', 'OK']);
  });

  it('may have 1,000 calls at a time on a connection', async () => {
    const { url } = await start([RULES]);
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const [settings] = await once(session, 'remoteSettings');
    expect(settings).toMatchObject({ maxConcurrentStreams: 1_000 });
  });

  it.each([
    ['that is no message', Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff])],
    ['that is cut off', Buffer.from([0, 0, 0, 1, 0])],
  ])('that sends bytes %s gets an error, and others their decisions', async (_, bytes) => {
    const { url, ask } = await start([RULES]);
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let code: unknown;
    stream.on('response', (headers) => (code ??= headers['grpc-status']));
    stream.on('trailers', (headers) => (code ??= headers['grpc-status']));
    stream.on('error', () => undefined);
    stream.resume().end(bytes);
    await once(stream, 'close');
    expect(code).not.toBe('0');
    expect(codesOf(await ask(USER))).toEqual(['OK', 'OK']);
  });
});

describe('without the store', () => {
  it('requests pass, marked as degraded, and banned ones do not', async () => {
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const { ask } = await start([RULES], { store: { kind: 'redis', url: redis.url } });
    expect(codesOf(await ask(USER))).toEqual(['OK', 'OK']);
    await redis.kill();
    await expect.poll(async () => headersOf(await ask(USER))['Service-RateLimit-Mode']).toBe('degraded');
    const answer = await ask({ ...USER, hits: 5 });
    expect(codesOf(answer)).toEqual(['OK', 'OK']);
    expect(headersOf(answer)).toEqual({
      'RateLimit-Policy': '"user";q=2;w=3600',
      'Service-RateLimit-Mode': 'degraded',
    });
    expect(answer.dynamicMetadata?.fields).toMatchObject({ degraded: { stringValue: expect.any(String) } });
    expect(codesOf(await ask({ descriptors: [{ entries: { banned: 'a' } }] }))[0]).toBe('OVER_LIMIT');
  });

  it('the call fails if the settings say so, and the proxy decides what that means', async () => {
    const store = { kind: 'redis', url: 'redis://127.0.0.1:1', onStoreFailure: 'reject' };
    const { ask, metrics } = await start([RULES], { store });
    await expect(ask(USER)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(await metrics()).toMatch(/^weir_descriptor_decisions_total\{outcome="uncounted"\} 1$/m);
  });

  it('a call is one point that is not counted, however many hits it has', async () => {
    const store = { kind: 'redis', url: 'redis://127.0.0.1:1' };
    const { ask, metrics } = await start([RULES], { store });
    await ask({ ...USER, hits: 5 });
    const points = [...(await metrics()).matchAll(/^weir_points_uncounted_total\{.*\} ([1-9]\d*)$/gm)];
    expect(points.map(([, number]) => number)).toEqual(['1']);
  });

  it('each replica admits its part of a limit if the settings say so', async () => {
    const store = { kind: 'redis', url: 'redis://127.0.0.1:1', onStoreFailure: 'share' };
    const { ask } = await start([RULES], { store });
    const answers = [await ask(USER), await ask(USER), await ask(USER)];
    expect(answers.map((one) => codesOf(one)[0])).toEqual(['OK', 'OK', 'OVER_LIMIT']);
    expect(answers.map((one) => headersOf(one)['Service-RateLimit-Mode'])).toEqual(Array(3).fill('degraded'));
  });
});

describe('when it starts', () => {
  it('invalid rules keep it from starting, with file, line and path', async () => {
    const starting = startRateLimitService(['domain: test\ndescriptors:\n  - { kee: user }\n']);
    await expect(starting).rejects.toThrow(
      /0\.yaml:3: descriptors\.0\.kee: unknown key "kee": did you mean "key"\?/,
    );
  });
});

describe('while it runs', () => {
  it('changed rules take effect, and invalid ones do not', async () => {
    const { ask, folder, metrics } = await start([RULES]);
    const file = join(folder, '0.yaml');
    await writeFile(file, RULES.replace('requests_per_unit: 2', 'requests_per_unit: 9'));
    const limit = async () => (await ask({ descriptors: [{ entries: { user: 'b' }, hits: 0 }] })).statuses[0];
    await expect.poll(limit, { timeout: 20_000 }).toMatchObject({ currentLimit: { requestsPerUnit: 9 } });
    await writeFile(file, 'domain: test\ndescriptors: [{ kee: user }]\n');
    await expect
      .poll(metrics, { timeout: 20_000 })
      .toMatch(/^weir_reloads_total\{file="descriptors",outcome="failure"\} 1$/m);
    expect(await limit()).toMatchObject({ currentLimit: { requestsPerUnit: 9 } });
  });

  it('is healthy, until it drains', async () => {
    const { health, ask, drain } = await start([RULES], {
      settings: { listen: { port: 'off' }, shutdown: { drainDelaySeconds: 1, graceSeconds: 1 } },
    });
    expect(await health()).toBe(1);
    const drained = drain();
    expect(await health()).toBe(2);
    expect(codesOf(await ask(USER))).toEqual(['OK', 'OK']);
    await drained;
    await expect(ask(USER)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  it('stops after its grace period, whatever its peers leave open', async () => {
    const { url, drain } = await start([RULES], {
      settings: { listen: { port: 'off' }, shutdown: { drainDelaySeconds: 0, graceSeconds: 1 } },
    });
    const [session, partial] = [connectHttp2(url), await connectRaw(url)];
    session.on('error', () => undefined);
    partial.on('error', () => undefined).write('PRI * HT');
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      'content-type': 'application/grpc',
    });
    stream.on('error', () => undefined);
    await once(session, 'remoteSettings');
    partial.resume();
    const closed = [session, partial].map((one) => new Promise((resolve) => one.once('close', resolve)));
    await drain();
    await Promise.all(closed);
  });

  it('replicas share one count in a Redis', async () => {
    const store = {
      kind: 'redis',
      url: inject('redisUrl'),
      keyPrefix: `rls-${crypto.randomUUID()}`,
      deadlineMs: 5_000,
    };
    const [one, other] = [await start([RULES], { store }), await start([RULES], { store })];
    expect(codesOf(await one.ask(USER))[0]).toBe('OK');
    expect(codesOf(await other.ask(USER))[0]).toBe('OK');
    expect(codesOf(await one.ask(USER))[0]).toBe('OVER_LIMIT');
  });

  it.each([
    ['legacy', { 'RateLimit-Limit': '2', 'RateLimit-Remaining': '1', 'RateLimit-Reset': '3600' }],
    ['none', {}],
  ])('the headers have the form %s', async (headers, expected) => {
    const { ask } = await start([RULES], { envoy: { headers } });
    expect(headersOf(await ask(USER))).toEqual(expected);
  });

  it('the legacy headers describe the limit that lets nothing pass', async () => {
    const { ask } = await start([RULES], { envoy: { headers: 'legacy' } });
    const banned = { entries: { user: 'banned' }, limit: { requestsPerUnit: 0, unit: 2 } };
    expect(headersOf(await ask({ descriptors: [...USER.descriptors, banned] }))).toEqual({
      'RateLimit-Limit': '0',
      'RateLimit-Remaining': '0',
      'RateLimit-Reset': '60',
    });
  });
});
