import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runWeirHere } from '../fixtures/run-here.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const run = promisify(execFile);

/** An API as a framework describes it. */
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  paths: {
    '/items/{item_id}': { get: { responses: {} } },
    '/items/': { get: { responses: {}, 'x-weir': { cost: 2 } }, post: { responses: {} } },
    '/reports': { post: { responses: {}, 'x-weir': { cost: 10 } } },
  },
};

let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());

async function folderWith(document: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
  return folder;
}

const init = (folder: string, url: string, ...more: readonly string[]) =>
  runWeirHere(['init', 'openapi.json', '--upstream', url, ...more], {}, folder);

it('three commands lead from an OpenAPI document to a 429', async () => {
  const folder = await folderWith(DOCUMENT);
  const { stdout } = await init(folder, upstream.url);
  const [start = '', tries = ''] = stdout.split('\n').filter((line) => line.startsWith('  '));
  expect(start.trim()).toBe('weir start');

  const args = [WEIR, 'start', '--port', '0', '--admin-port', '0'];
  const gateway = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void gateway.kill('SIGKILL'));
  const lines: string[] = [];
  let url = '';
  for await (const line of createInterface({ input: gateway.stdout })) {
    lines.push(line);
    if (!line.includes('"weir is listening"')) continue;
    ({ url } = JSON.parse(line));
    break;
  }
  gateway.stdout.resume();
  expect(lines.filter((line) => line.includes('"level":40'))).toEqual([]);

  const answers = await run('sh', ['-c', tries.replace('http://127.0.0.1:8080', url)]);
  const ended = once(gateway, 'exit');
  gateway.kill('SIGINT');
  await ended;
  const statuses = answers.stdout.trim().split(/\r?\n/);
  expect(statuses).toEqual([...Array(5).fill('HTTP/1.1 200 OK'), 'HTTP/1.1 429 Too Many Requests']);
  expect(upstream.seen.map(({ url: target }) => target)).toEqual(Array(5).fill('/items/'));
}, 90_000);

it('weir init overwrites nothing without --force, and writes nothing for an invalid document', async () => {
  const folder = await folderWith(DOCUMENT);
  await writeFile(join(folder, 'limits.yaml'), '# mine');
  expect(await init(folder, 'http://a')).toMatchObject({
    code: 1,
    stderr: 'Nothing was written, because this folder has limits.yaml: --force overwrites.\n',
  });
  expect(await readdir(folder)).toEqual(['limits.yaml', 'openapi.json']);
  await init(folder, 'http://a', '--force');
  expect(await readFile(join(folder, 'limits.yaml'), 'utf8')).toContain('windowSeconds');

  const invalid = await folderWith({ swagger: '2.0' });
  expect(await init(invalid, 'http://a')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Swagger 2.0'),
  });
  expect(await readdir(invalid)).toEqual(['openapi.json']);
}, 90_000);

it('a shell runs nothing of a path in what is printed', async () => {
  const path = "/x';touch$IFS$PWD/ran;'$(touch ran)`touch ran`";
  const folder = await folderWith({ ...DOCUMENT, paths: { [path]: { get: { responses: {} } } } });
  const { stdout } = await init(folder, upstream.url);
  const tries = stdout.split('\n').find((line) => line.includes('curl'));
  const shown = await run('sh', ['-c', `curl() { printf '%s\\n' "$4"; }; ${tries}`], { cwd: folder });
  expect(shown.stdout.split('\n')[0]).toBe(`http://127.0.0.1:8080${path}`);
  expect(await readdir(folder)).not.toContain('ran');
});
