import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runWeirHere } from '../fixtures/run-here.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { BARE } from '../fixtures/weir-process.ts';

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

/** Starts the gateway of a folder and runs the requests that `init` printed. @returns their statuses and the gateway's warnings */
async function runSteps(folder: string, stdout: string) {
  const [start = '', ...words] = stdout.split('\n').filter((line) => line.startsWith('  '));
  const tries = words.join('\n');
  expect(start.trim()).toBe('weir start');
  const args = [WEIR, 'start', '--port', '0', '--admin-port', '0'];
  const gateway = spawn(process.execPath, args, {
    cwd: folder,
    env: BARE,
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
  const token = /Bearer [\w-]+/.exec(tries)?.[0] ?? '';
  const statusOf = async (path: string) =>
    (await fetch(url + path, { headers: { Authorization: token }, redirect: 'manual' })).status;
  const runTries = async () => {
    const answers = await run('sh', ['-c', tries.replace('http://127.0.0.1:8080', url)]);
    return answers.stdout.trim().split(/\r?\n/);
  };
  const close = async () => {
    const ended = once(gateway, 'exit');
    gateway.kill('SIGINT');
    await ended;
  };
  return { warnings: lines.filter((line) => line.includes('"level":40')), statusOf, runTries, close };
}

const FIVE_THEN_429 = [...Array(5).fill('HTTP/1.1 200 OK'), 'HTTP/1.1 429 Too Many Requests'];

it('three commands lead from an OpenAPI document to a 429', async () => {
  const folder = await folderWith(DOCUMENT);
  const { stdout } = await init(folder, upstream.url);
  const gateway = await runSteps(folder, stdout);
  expect(gateway.warnings).toEqual([]);
  const seen = upstream.seen.length;
  expect(await gateway.runTries()).toEqual(FIVE_THEN_429);
  expect(upstream.seen.slice(seen).map(({ url: target }) => target)).toEqual(Array(5).fill('/items/'));
  await gateway.close();
});

it('an API without a document gets a configuration that works, with and without slashes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream((request, response) => {
    response.statusCode = /api-docs|openapi|api-json|swagger|documentation/.test(request.url ?? '')
      ? 404
      : 200;
    response.end();
  });
  onTestFinished(() => api.close());
  const { stdout } = await runWeirHere(['init', '--upstream', api.url], {}, folder);
  expect(stdout).toContain(`${api.url} has no OpenAPI document at /openapi.json,`);
  const gateway = await runSteps(folder, stdout);
  expect(gateway.warnings).toEqual([]);
  expect(await gateway.statusOf('/items/?utm=5')).toBe(200);
  expect(await gateway.statusOf('/items')).toBe(200);
  expect((await gateway.runTries()).at(-1)).toBe('HTTP/1.1 429 Too Many Requests');
  await gateway.close();
});

const QUERY = [{ name: 'limit', in: 'query', schema: { type: 'integer' } }];
const SERVED = { ...DOCUMENT, paths: { '/items': { get: { parameters: QUERY, responses: {} } } } };

/** Runs `init` for an API that serves its document at `place`. */
async function initFrom(place: string) {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream((request, response) => {
    // Like a single-page application, which answers every path with its page.
    response.end(request.url === place ? JSON.stringify(SERVED) : '<!doctype html><p>openapi: none</p>');
  });
  onTestFinished(() => api.close());
  const { stdout } = await runWeirHere(['init', '--upstream', `${api.url}/`], {}, folder);
  expect(stdout).toContain(`openapi.json has 1 operation, from ${api.url}${place}.`);
  expect(JSON.parse(await readFile(join(folder, 'openapi.json'), 'utf8'))).toEqual(SERVED);
  const settings = await readFile(join(folder, 'weir.yaml'), 'utf8');
  return { folder, stdout, settings: settings.replaceAll(api.url, 'http://api') };
}

it('the document that the API serves at /openapi.json is saved, and undeclared parameters pass', async () => {
  const { folder, stdout } = await initFrom('/openapi.json');
  const gateway = await runSteps(folder, stdout);
  expect(await gateway.statusOf('/items?utm=5')).toBe(200);
  expect(await gateway.statusOf('/items?limit=x')).toBe(422);
  expect(await gateway.statusOf('/items//')).toBe(400);
  await gateway.close();
});

it.each(['/v3/api-docs', '/api-json', '/openapi/v1.json'])(
  'one that it serves at %s leads to the same settings',
  async (place) => {
    expect((await initFrom(place)).settings).toBe((await initFrom('/openapi.json')).settings);
  },
);

it('a document at a URL is saved, and one that cannot be downloaded is an error', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream((request, response) => {
    if (request.url === '/api.yaml')
      response.end("openapi: 3.1.0\ninfo: { title: a, version: '1' }\npaths: {}\n");
    else response.writeHead(404).end();
  });
  onTestFinished(() => api.close());
  const initWith = (document: string) =>
    runWeirHere(['init', document, '--upstream', 'http://a'], {}, folder);
  expect(await initWith(`${api.url}/other.yaml`)).toMatchObject({
    code: 1,
    stderr: `Nothing was written, because ${api.url}/other.yaml answers 404.\n`,
  });
  expect(await readdir(folder)).toEqual([]);
  await initWith(`${api.url}/api.yaml`);
  expect(await readFile(join(folder, 'weir.yaml'), 'utf8')).toContain('openapi: "openapi.yaml"');
  expect(await readdir(folder)).toEqual(['identities.yaml', 'limits.yaml', 'openapi.yaml', 'weir.yaml']);
});

it('a document that cannot be used is named, and the configuration works without it', async () => {
  const initFor = async (document: object, place: string) => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
    const api = await startUpstream((request, response) => {
      if (request.url === place) response.end(JSON.stringify(document));
      else response.writeHead(404).end();
    });
    const { stdout, code } = await runWeirHere(['init', '--upstream', api.url], {}, folder);
    await api.close();
    expect(code).toBe(0);
    expect(await readFile(join(folder, 'weir.yaml'), 'utf8')).toContain(
      'operations: { list: [], unlisted: charge }',
    );
    expect((await runWeirHere(['check'], {}, folder)).stdout).toContain('weir.yaml is valid');
    return stdout;
  };
  expect(await initFor({ swagger: '2.0' }, '/swagger.json')).toMatch(
    /swagger\.json is a Swagger 2\.0 document, which Weir does not read\. Convert it/,
  );
  expect(await initFor({ ...SERVED, paths: { broken: {} } }, '/openapi.json')).toMatch(
    /openapi\.json is not used: .*a path begins with a slash/,
  );
});

it.each([
  ['is broken', 'is not used: .*the { is not closed', '{"openapi":"3.1.0", "paths": {'],
  ['needs a token', 'answers 401. If the API has one, run weir init with its file or URL.'],
])('a document that %s is not said to be missing', async (_, reason, text?: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream((request, response) => {
    if (request.url !== '/openapi.json') response.writeHead(404).end();
    else response.writeHead(text === undefined ? 401 : 200).end(text);
  });
  onTestFinished(() => api.close());
  const { stdout, code } = await runWeirHere(['init', '--upstream', api.url], {}, folder);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`${api.url}/openapi.json ${reason}`));
  expect(stdout).not.toContain('has no OpenAPI document');
});

it('a file that cannot be written is named, with the files that were', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  await symlink(join(folder, 'missing', 'limits.yaml'), join(folder, 'limits.yaml'));
  const { stderr, code } = await runWeirHere(['init', '--upstream', 'http://127.0.0.1:9'], {}, folder);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^Only weir\.yaml was written, because limits\.yaml cannot be: EEXIST/),
  ]);
});

it('an upstream that does not speak TLS is reported as such', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream();
  onTestFinished(() => api.close());
  const url = api.url.replace('http:', 'https:');
  const { stdout } = await runWeirHere(['init', '--upstream', url], {}, folder);
  expect(stdout).toContain(
    `${url} does not answer (it does not speak TLS, so its URL may have to begin with`,
  );
});

it.each([
  ['a page', '<html></html>'],
  ['another YAML', 'hello: world'],
  ['another JSON', '{"hello": "world"}'],
])('%s at the URL of a document is named by its URL, and nothing is written', async (_, text) => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream((_request, response) => void response.end(text));
  const url = `${api.url}/docs`;
  const { stderr, code } = await runWeirHere(['init', url, '--upstream', api.url], {}, folder);
  await api.close();
  expect([code, stderr.split('\n')]).toEqual([
    1,
    [`${url}: openapi: this is not an OpenAPI document: it has no "openapi: 3.1.0"`, ''],
  ]);
  expect(await readdir(folder)).toEqual([]);
});

it('an upstream that does not answer is named', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
  const api = await startUpstream();
  await api.close();
  const { stdout } = await runWeirHere(['init', '--upstream', api.url], {}, folder);
  expect(stdout).toContain(`${api.url} does not answer (ECONNREFUSED), so it was not asked`);
});

/** An API that serves some paths, and a document whose `servers` has a path of its own. */
async function initBehindServers(served: readonly string[]) {
  const folder = await folderWith({ ...DOCUMENT, servers: [{ url: 'https://api.example.com/v9' }] });
  const api = await startUpstream((request, response) => {
    response.statusCode = served.includes(request.url ?? '') ? 200 : 404;
    response.end();
  });
  onTestFinished(() => api.close());
  const { stdout } = await init(folder, api.url);
  return { folder, stdout, settings: await readFile(join(folder, 'weir.yaml'), 'utf8'), url: api.url };
}

it('costs apply to an API whose document has servers with a path that the API does not have', async () => {
  const { folder, stdout, settings, url } = await initBehindServers(['/items/']);
  expect(stdout).toContain(
    `${url}/v9/items/ answers 404, and ${url}/items/ answers 200, so weir.yaml has basePath: ""`,
  );
  expect(settings).toContain('undeclaredQuery: forward\n  basePath: ""\n');
  const gateway = await runSteps(folder, stdout);
  expect(await gateway.runTries()).toEqual(FIVE_THEN_429);
  await gateway.close();
});

it('the path of servers is kept where the API has it, and a doubt is reported', async () => {
  const kept = await initBehindServers(['/v9/items/']);
  expect(kept.settings).not.toContain('basePath');
  expect(kept.stdout).toContain('/v9/items/');
  expect(kept.stdout).not.toContain('basePath');
  for (const served of [[], ['/items/', '/v9/items/']]) {
    const { settings, stdout } = await initBehindServers(served);
    expect(settings).not.toContain('basePath');
    expect(stdout).toContain(
      "Costs apply to /v9/items/, because of the document's servers. If requests have no /v9, set basePath",
    );
  }
});

it('a dead upstream is said to be dead, also with a document of this folder', async () => {
  const api = await startUpstream();
  await api.close();
  const { stdout } = await init(await folderWith(DOCUMENT), api.url);
  expect(stdout).toContain(`Nothing answers at ${api.url} (ECONNREFUSED). Requests get a 503 until`);
});

it('without a document, the loop asks for a path and begins with one that the API serves', async () => {
  const initFor = async (served: readonly string[]) => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-init-'));
    const api = await startUpstream((request, response) => {
      response.statusCode = served.includes(request.url ?? '') ? 200 : 404;
      response.end();
    });
    onTestFinished(() => api.close());
    const { stdout } = await runWeirHere(['init', '--upstream', api.url], {}, folder);
    return { folder, stdout };
  };
  const { folder, stdout } = await initFor(['/health']);
  expect(stdout).toContain('  target=/health   # put a path of yours here\n');
  const gateway = await runSteps(folder, stdout);
  expect(await gateway.runTries()).toEqual(FIVE_THEN_429);
  await gateway.close();
  const loop = (await initFor([])).stdout
    .split('\n')
    .filter((line) => line.startsWith('  '))
    .slice(1);
  const failure = await run('sh', ['-c', loop.join('\n')]).catch((error) => error.stderr);
  expect(failure).toMatch(/target: put a path of yours there, such as target=\/items/);
});

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
});

it('a shell runs nothing of a path in what is printed', async () => {
  const path = "/x';touch$IFS$PWD/ran;'$(touch ran)`touch ran`";
  const folder = await folderWith({ ...DOCUMENT, paths: { [path]: { get: { responses: {} } } } });
  const { stdout } = await init(folder, upstream.url);
  const tries = stdout.split('\n').find((line) => line.includes('curl'));
  const shown = await run('sh', ['-c', `curl() { printf '%s\\n' "$4"; }; ${tries}`], { cwd: folder });
  expect(shown.stdout.split('\n')[0]).toBe(`http://127.0.0.1:8080${path}`);
  expect(await readdir(folder)).not.toContain('ran');
});
