import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startUpstream } from '../fixtures/upstream.ts';

describe('the gateway sets its own headers in both directions', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const upstream = await startUpstream((_request, response) => {
      response.setHeader('RateLimit', '"account-read";r=999999;t=0');
      response.setHeader('RateLimit-Policy', '"forged";q=1;w=1');
      response.setHeader('Service-RateLimit-Mode', 'degraded');
      response.setHeader('X-Upstream', 'kept');
      response.setHeader('Set-Cookie', ['a=1', 'b=2']);
      response.end('{}');
    });
    gateway = await startGateway({ upstream });
  });
  afterAll(() => gateway.close());

  it("sets its own headers and drops a client's", async () => {
    const headers = {
      'X-Account-Id': 'forged',
      'X-Organization-Id': 'forged',
      'X-Principal-Id': 'forged',
      'X-Principal-Type': 'forged',
      'X-Forwarded-For': '1.2.3.4',
      RateLimit: 'forged',
      'X-Request-Id': 'not sane!',
      'Idempotency-Key': 'key-7',
      'X-Custom': 'kept',
    };
    const answer = await gateway.send('GET', '/v3/things?page%5Bsize%5D=5', {
      token: 'person',
      account: 'acct_2',
      headers,
    });
    const seen = gateway.upstream.seen.at(-1);
    expect(seen?.url).toBe('/v3/things?page%5Bsize%5D=5');
    expect(seen?.headers).toMatchObject({
      'x-account-id': 'acct_2',
      'x-organization-id': 'org_1',
      'x-principal-id': 'person_1',
      'x-principal-type': 'Person',
      'x-service-account': 'acct_2',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': new URL(gateway.url).host,
      'idempotency-key': 'key-7',
      'x-custom': 'kept',
    });
    expect(seen?.headers.ratelimit).toBeUndefined();
    expect(seen?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers.get('X-Request-Id')).toBe(seen?.headers['x-request-id']);
  });

  it("drops an upstream's rate limit fields and keeps the rest", async () => {
    const answer = await gateway.send('GET', '/v3/things', {
      token: 'lonely',
      headers: { 'X-Request-Id': 'sane-1' },
    });
    expect(answer.headers.get('RateLimit')).toMatch(/^"account-read";r=19;t=60$/);
    expect(answer.headers.get('RateLimit-Policy')).not.toContain('forged');
    expect(answer.headers.get('Service-RateLimit-Mode')).toBeNull();
    expect(answer.headers.get('X-Upstream')).toBe('kept');
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(answer.headers.get('X-Request-Id')).toBe('sane-1');
  });
});
