import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useConsole } from './use-console.ts';

const { start, newPage } = useConsole();

let attacker: Server;
let attackerUrl: string;
beforeAll(async () => {
  attacker = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html').end('<title>attacker</title>');
  });
  await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve));
  attackerUrl = `http://127.0.0.1:${(attacker.address() as AddressInfo).port}`;
});
afterAll(() => attacker?.close());

it('cannot put the console in a frame, read it, or act through it', async () => {
  const gateway = await start();
  const page = await newPage();
  await page.goto(attackerUrl);
  const results = await page.evaluate<string[]>(`(${attack})(${JSON.stringify(gateway.adminUrl)})`);
  expect(results).toEqual(['refused', 'refused', 'refused']);
  expect(page.frames().map((frame) => frame.url())).not.toContain(`${gateway.adminUrl}/`);
  expect((await gateway.send('GET', '/v3/things')).headers.get('RateLimit-Policy')).toContain('q=20;');
  expect(await (await fetch(`${gateway.adminUrl}/revocations`)).json()).toEqual([]);
});

it('the page has a strict policy, and a name of an attacker reaches no data', async () => {
  const gateway = await start();
  for (const path of ['/', '/console/console.js', '/console/page.css', '/console/icon.svg']) {
    const { status, headers } = await fetch(gateway.adminUrl + path);
    expect(status, path).toBe(200);
    const policy = headers.get('content-security-policy') ?? '';
    for (const directive of [
      "default-src 'none'",
      "script-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
      expect(policy.split('; '), path).toContain(directive);
    expect(policy).not.toContain('unsafe');
    expect([headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual([
      'nosniff',
      'no-referrer',
    ]);
  }
  for (const path of ['/console/page.ts', '/console/..%2fserver.js', '/console/tsconfig.json'])
    expect((await fetch(gateway.adminUrl + path)).status, path).toBe(404);
  for (const path of ['/fleet', '/fleet/events', '/revocations', '/limits/live', '/usage/top'])
    expect(await statusFor(gateway.adminUrl + path, 'attacker.example'), path).toBe(403);
});

/** What a page of another site tries; it runs in the browser. */
const attack = `async function attack(url) {
  const frame = document.createElement('iframe');
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
  frame.src = url;
  document.body.append(frame);
  await loaded;
  const send = (path, init) => fetch(url + path, init).then(() => 'answered', () => 'refused');
  const body = JSON.stringify({ principal: 'svc_1', why: 'attack' });
  const headers = { 'Content-Type': 'application/json' };
  await send('/revocations', { method: 'POST', mode: 'no-cors', body });
  const limit = JSON.stringify({ 'account-read': 50, why: 'attack' });
  return [
    await send('/fleet'),
    await send('/revocations', { method: 'POST', headers, body }),
    await send('/limits/live/accounts/acct_1', { method: 'PUT', headers, body: limit }),
  ];
}`;

async function statusFor(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { Host: host } }, (response) => {
      response.destroy();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}
