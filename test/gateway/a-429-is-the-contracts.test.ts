import { type Item, parseList } from 'structured-headers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

describe('a 429', () => {
  let gateway: TestGateway;
  let refused: Response;
  let body: Record<string, unknown>;
  beforeAll(async () => {
    gateway = await startGateway();
    for (let count = 0; count < 2; count++) await gateway.send('POST', '/v3/reports');
    refused = await gateway.send('POST', '/v3/reports', { headers: { 'X-Request-Id': 'my-request.1' } });
    body = (await refused.json()) as Record<string, unknown>;
  });
  afterAll(() => gateway.close());

  it('has exactly the members of the contract', () => {
    expect(refused.status).toBe(429);
    expect(refused.headers.get('Content-Type')).toBe('application/problem+json');
    expect(body).toEqual({
      type: 'https://api.example.com/errors/rate-limit-exceeded',
      title: 'Rate Limit Exceeded',
      status: 429,
      detail: expect.any(String),
      code: 'RateLimitExceeded',
      requestId: 'my-request.1',
      extensions: { bucket: 'account-write', limit: 20, windowSeconds: 60, costPoints: 7 },
    });
  });

  it('has header fields that are structured field lists', () => {
    const names = (list: Item[]) => list.map(([name]) => name);
    const policy = parseList(refused.headers.get('RateLimit-Policy') ?? '') as Item[];
    expect(names(policy)).toEqual([
      'account-read',
      'account-write',
      'organization-read',
      'organization-write',
    ]);
    for (const [, parameters] of policy)
      expect(Object.fromEntries(parameters)).toEqual({ q: expect.any(Number), w: 60 });
    const rateLimit = parseList(refused.headers.get('RateLimit') ?? '') as Item[];
    expect(names(rateLimit)).toEqual(['account-write', 'organization-write']);
    expect(rateLimit.map(([, parameters]) => parameters.get('r'))).toEqual([6, 16]);
  });

  it('has a Retry-After in whole seconds, at most the window', () => {
    const seconds = Number(refused.headers.get('Retry-After'));
    expect(Number.isInteger(seconds)).toBe(true);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  });
});
