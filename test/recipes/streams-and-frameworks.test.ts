import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { ALICE, answer, pointsLeft, serve, startNodeRecipe } from '../fixtures/recipe-service.ts';
import { commandsOf, recipe, startRecipe, writeFolder } from '../fixtures/recipes.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { skipReason } from '../fixtures/skip-reason.ts';

const options = { timeout: 90_000 };

/** Opens a WebSocket. @returns it, and the points left after its handshake */
async function connect(url: string, path: string) {
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path, { headers: ALICE });
  onTestFinished(() => socket.terminate());
  const upgraded = once(socket, 'upgrade');
  const first = once(socket, 'message');
  const [response] = await upgraded;
  return { socket, first, left: pointsLeft(response.headers.ratelimit) };
}

it('GraphQL: a query spends from the reads, and a subscription is charged once', options, async () => {
  const url = await startNodeRecipe('graphql');
  const expected = { data: { account: 'acct_a' } };
  expect(await answer(url, 'POST', '/graphql', '{"query":"{ account }"}')).toEqual([200, 18, expected]);
  const { first, left } = await connect(url, '/graphql');
  expect(left).toBe(13);
  expect(`${(await first)[0]}`).toContain('connection_ack');
  const statusOf = async (init: RequestInit) =>
    (await fetch(`${url}/graphql`, { headers: ALICE, ...init })).status;
  expect([await statusOf({}), await statusOf({ method: 'POST', body: '{' })]).toEqual([405, 400]);
  expect(await answer(url, 'POST', '/graphql', '{"query":"{ account }"}')).toEqual([200, 4, expected]);
});

it('WebSocket: the handshake is charged, and no message', options, async () => {
  const url = await startNodeRecipe('streams');
  const { socket, first, left } = await connect(url, '/socket');
  expect(left).toBe(15);
  if (socket.readyState !== WebSocket.OPEN) await once(socket, 'open');
  socket.send('one');
  expect(`${(await first)[0]}`).toBe('acct_a: one');
  socket.send('two');
  expect(`${(await once(socket, 'message'))[0]}`).toBe('acct_a: two');
  const { headers } = await fetch(`${url}/events`, { headers: ALICE });
  expect(pointsLeft(headers.get('RateLimit'))).toBe(12);
});

it('server-sent events: each arrives as it is sent', options, async () => {
  const url = await startNodeRecipe('streams');
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const { headers, body } = await fetch(`${url}/events`, { headers: ALICE, signal: end.signal });
  expect(pointsLeft(headers.get('RateLimit'))).toBe(17);
  const { value } = (await body?.getReader().read()) ?? {};
  expect(new TextDecoder().decode(value)).toBe('data: hello acct_a\n\n');
});

it('Hono: the list of operations sets the costs', options, async () => {
  const url = await startNodeRecipe('hono');
  expect(await answer(url, 'GET', '/items')).toEqual([200, 19, { account: 'acct_a', items: [] }]);
  expect(await answer(url, 'POST', '/items', '{"name":"one"}')).toEqual([201, 5, { name: 'one' }]);
});

const hasGo = spawnSync('go', ['version']).status === 0;
const GO = hasGo
  ? 'Go: the list of operations sets the costs'
  : skipReason('GO IS NOT TESTED HERE, because it is not installed: https://go.dev/dl');

it.skipIf(!hasGo)(GO, options, async () => {
  const page = 'go';
  const folder = await writeFolder(recipe(page));
  const built = spawnSync('go', ['build', '-o', 'service', 'main.go'], { cwd: folder, encoding: 'utf8' });
  expect(built).toMatchObject({ status: 0 });
  const service = await serve(folder, join(folder, 'service'), () => []);
  const weir = await startRecipe(page, { env: { WEIR_UPSTREAM_URL: service } });
  onTestFinished(() => weir.close());
  expect(await answer(weir.url, 'GET', '/items')).toEqual([200, 19, { account: 'acct_a', items: [] }]);
  expect(await answer(weir.url, 'POST', '/items', '{"name":"one"}')).toEqual([201, 5, { name: 'one' }]);
});

/** Runs the first command of the NestJS recipe. */
function makePackage(folder: string): void {
  const [command = ''] = commandsOf('nestjs');
  expect(spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' })).toMatchObject({ status: 0 });
}

it('NestJS: the commands make a package of modules in a folder that has none', options, async () => {
  const folder = await writeFolder({});
  makePackage(folder);
  expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({ type: 'module' });
});

const NESTJS_FOLDER = process.env.WEIR_TEST_NESTJS ?? '';
const hasNestJs = existsSync(join(NESTJS_FOLDER, '@nestjs/swagger'));
const NESTJS = hasNestJs
  ? 'NestJS: weir init finds the document, which sets the costs'
  : skipReason(
      'NESTJS IS NOT TESTED HERE, because WEIR_TEST_NESTJS names no folder with it: see .ci/chart-tools',
    );

it.skipIf(!hasNestJs)(NESTJS, options, async () => {
  const page = 'nestjs';
  const folder = await writeFolder(recipe(page));
  makePackage(folder);
  symlinkSync(NESTJS_FOLDER, join(folder, 'node_modules'));
  const [, , ...compile] =
    commandsOf('nestjs')
      .find((line) => line.startsWith('npx tsc'))
      ?.split(' ') ?? [];
  const tsc = [resolve('node_modules/typescript/bin/tsc'), ...compile, '--ignoreConfig'];
  expect(spawnSync(process.execPath, tsc, { cwd: folder, encoding: 'utf8' })).toMatchObject({ status: 0 });
  const service = await serve(folder, process.execPath, () => ['main.js']);

  const written = await writeFolder({});
  expect(await runWeirHere(['init', '--upstream', service], {}, written)).toMatchObject({ code: 0 });
  const files = Object.fromEntries(
    ['weir.yaml', 'openapi.json'].map((name) => [name, readFileSync(join(written, name), 'utf8')]),
  );
  const weir = await startRecipe(page, { files });
  onTestFinished(() => weir.close());
  expect(await answer(weir.url, 'GET', '/items')).toEqual([200, 19, { account: 'acct_a', items: [] }]);
  expect(await answer(weir.url, 'POST', '/items', '{"name":"one"}')).toEqual([201, 5, { name: 'one' }]);
});
