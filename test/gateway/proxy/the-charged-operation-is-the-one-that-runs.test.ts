import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import createRouter from 'router';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { sendRaw } from '../../fixtures/raw.ts';

/** What the operations of the tests' OpenAPI document cost; anything else costs 1. */
const COSTS: Readonly<Record<string, number>> = { '/v3/reports': 10, '/v3/things': 1, '/v3/things/:id': 1 };

/** A service on Express 5's router as it comes, which says what it ran. */
const server = createServer((request, response) => {
  router({ method: request.method ?? '', url: request.url ?? '' }, response, () =>
    response.writeHead(404).end(),
  );
});
const router = createRouter();
let answerWith: (ran: string) => void = () => {};
for (const path of Object.keys(COSTS)) router.get(path, () => answerWith(path));

let gateway: TestGateway;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.prependListener('request', (_request, response) => {
    answerWith = (ran) => response.setHeader('X-Ran', ran).end();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  gateway = await startGateway({
    upstream: { url, seen: [], close: async () => void server.close() },
    limits: PLENTY,
    settings: { upstream: { url, pathProfile: { trailingSlash: 'remove', duplicateSlashes: 'merge' } } },
  });
});
afterAll(async () => {
  await gateway.close();
  server.closeAllConnections();
});

const pieces = fc.constantFrom(
  '/v3',
  '/reports',
  '/things',
  '/x1',
  '/',
  '//',
  '/.',
  '/..',
  '/%2e%2e',
  '%64ear',
  '%44EAR',
  '/REPORTS',
  '\\reports',
  '%2freports',
  '%5creports',
  ';x=1',
  '%00',
  '#',
  '?a=/../reports',
  '%20',
  '%c0%af',
  '.json',
  'http://weir',
  '*',
  '\t',
  '%',
  '/%76%33',
);
const likely = fc.constantFrom(
  '/reports',
  '/things',
  '/Reports',
  '/%64ear',
  '/things/x1',
  '/reports/',
  '//reports',
  '/REPORTS?q=1',
);
const targets = fc
  .tuple(
    fc.constantFrom('/v3', '/v3', '/V3', '/%763'),
    fc.array(fc.oneof(likely, pieces), { minLength: 1, maxLength: 3 }),
  )
  .map(([version, parts]) => version + parts.join(''));

it('over the wire, no target is charged less than the operation that the upstream ran', async () => {
  let left = 1_000_000;
  let served = 0;
  await fc.assert(
    fc.asyncProperty(targets, async (target) => {
      const { text, statuses } = await sendRaw(
        gateway.url,
        `GET ${target} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer lonely\r\nConnection: close\r\n\r\n`,
      );
      expect(statuses).toHaveLength(1);
      expect([200, 400, 404, 422]).toContain(statuses[0]);
      const remaining = /^RateLimit: "account-read";r=(\d+)/m.exec(text)?.[1];
      const charged = remaining === undefined ? 0 : left - Number(remaining);
      left -= charged;
      const ran = /^x-ran: (.*)\r$/im.exec(text)?.[1];
      if (ran !== undefined) served++;
      expect(charged).toBeGreaterThanOrEqual(COSTS[ran ?? ''] ?? 0);
      if (statuses[0] === 400) expect(charged).toBe(0);
    }),
    { numRuns: generatedCases(250) },
  );
  expect(served).toBeGreaterThan(generatedCases(25));
});
