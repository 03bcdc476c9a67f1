import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { expect, it, onTestFinished } from 'vitest';
import { startChromium } from '../fixtures/chromium.ts';
import { ALICE, answer, pointsLeft, serve, startNodeRecipe } from '../fixtures/recipe-service.ts';
import { commandsOf, recipe, replaced, startRecipe, writeFolder } from '../fixtures/recipes.ts';
import { skipReason } from '../fixtures/skip-reason.ts';
import { startUpstream } from '../fixtures/upstream.ts';

it('Express: the list of operations sets the costs, and the service sees the Account', async () => {
  const url = await startNodeRecipe('express');
  expect(await answer(url, 'GET', '/items')).toEqual([200, 19, { account: 'acct_a', items: [] }]);
  expect(await answer(url, 'POST', '/items/', '{"name":"one"}')).toEqual([201, 5, { name: 'one' }]);
});

const PYTHON = process.env.WEIR_TEST_PYTHON ?? 'python3';
const hasFastApi = spawnSync(PYTHON, ['-c', 'import fastapi, uvicorn']).status === 0;
const NAME = hasFastApi
  ? 'FastAPI: the generated document sets the costs, and declares the slashes'
  : skipReason('FASTAPI IS NOT TESTED HERE, because it is not installed: pip install fastapi uvicorn');

it.skipIf(!hasFastApi)(NAME, { timeout: 60_000 }, async () => {
  const page = 'fastapi';
  const folder = await writeFolder(recipe(page));
  const generate = commandsOf('fastapi').find((line) => line.includes('> openapi.json')) ?? '';
  const command = replaced(generate, { 'python -c': `'${PYTHON}' -c` });
  const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  const service = await serve(folder, PYTHON, (port) => ['-m', 'uvicorn', 'main:app', '--port', `${port}`]);
  const files = { 'openapi.json': readFileSync(join(folder, 'openapi.json'), 'utf8') };
  const weir = await startRecipe(page, { files, env: { WEIR_UPSTREAM_URL: service } });
  onTestFinished(() => weir.close());
  expect(await answer(weir.url, 'GET', '/items/')).toEqual([200, 19, { account: 'acct_a', items: [] }]);
  expect(await answer(weir.url, 'POST', '/items/')).toEqual([201, 5, { id: 1 }]);
});

it('a browser app: the page reads what is left, and when to try again', async () => {
  const recipePage = 'browser-app';
  const files = recipe(recipePage);
  let page = '';
  const app = await startUpstream((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(page);
  });
  const upstream = await startUpstream();
  const settings = replaced(files['weir.yaml'] ?? '', { 'http://127.0.0.1:5173': app.url });
  const weir = await startRecipe(recipePage, {
    files: { 'weir.yaml': settings },
    env: { WEIR_UPSTREAM_URL: upstream.url },
  });
  page = replaced(files['index.html'] ?? '', { 'http://127.0.0.1:8080': weir.url });
  const browser = await startChromium();
  for (const started of [app, upstream, weir, browser]) onTestFinished(() => started.close());

  const tab = await browser.newPage();
  await tab.goto(app.url);
  const limit = tab.locator('#limit');
  await tab.click('button');
  await expect.poll(() => limit.textContent(), { timeout: 30_000 }).toBe('200: 19 points left.');
  for (let count = 0; count < 19; count++) await fetch(`${weir.url}/items`, { headers: ALICE });
  await tab.click('button');
  await expect.poll(() => limit.textContent(), { timeout: 30_000 }).toMatch(/^Try again in \d+ seconds\.$/);
});

it('expensive reports: an Account has two in flight, and starts the next when one has ended', async () => {
  const waiting: ServerResponse[] = [];
  const upstream = await startUpstream((_request, response) => waiting.push(response));
  const env = { WEIR_UPSTREAM_URL: upstream.url };
  const weir = await startRecipe('expensive-reports', { env });
  for (const started of [upstream, weir]) onTestFinished(() => started.close());
  const start = () => fetch(`${weir.url}/reports`, { method: 'POST', headers: ALICE });
  const running = [start(), start()];
  await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(2);
  const refused = await start();
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '1']);
  expect(await refused.json()).toMatchObject({
    extensions: { bucket: 'reports-in-flight', windowSeconds: 0 },
  });
  for (const response of waiting.splice(0)) response.end();
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  const next = start();
  await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(1);
  waiting[0]?.end();
  // Three reports have spent two of ten points each, and the refusal nothing.
  expect(pointsLeft((await next).headers.get('RateLimit'))).toBe(4);
});

it('Kong: Weir behind it reads the address of the client that Kong adds', async () => {
  const seen: unknown[] = [];
  const items = await startUpstream(({ headers }, response) => {
    seen.push(headers['x-forwarded-for']);
    response.end('[]');
  });
  onTestFinished(() => items.close());
  const weir = await startRecipe('proxies/kong', { env: { WEIR_UPSTREAM_URL: items.url } });
  onTestFinished(() => weir.close());
  const response = await fetch(`${weir.url}/items`, {
    headers: { ...ALICE, 'X-Forwarded-For': '192.0.2.7' },
  });
  expect(response.headers.get('RateLimit')).toContain('"account-read";r=19');
  expect(seen).toEqual([expect.stringContaining('192.0.2.7')]);
  expect(load(recipe('proxies/kong')['kong.yaml'] ?? '')).toMatchObject({
    services: [{ retries: 0, routes: [{ strip_path: false }] }],
  });
});
