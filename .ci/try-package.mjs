// Installs a packed npm package into an empty folder and uses it as a reader of README.md would: `npx weir init`, `npx weir start` and
// requests until a 429, then the counter from JavaScript and from TypeScript. Usage: node .ci/try-package.mjs <file.tgz>
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const tarball = resolve(process.argv[2] ?? '');
const tsc = resolve('node_modules/.bin/tsc');
const folder = mkdtempSync(join(tmpdir(), 'weir-package-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
// Variables that an outer `npx` sets would be options of the inner ones.
for (const variable of Object.keys(process.env)) if (/^npm_/i.test(variable)) delete process.env[variable];
const run = (command, ...args) =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

run('npm', 'init', '--yes');
run('npm', 'install', '--silent', tarball);
const [name] = Object.keys(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).dependencies);

async function tryGateway() {
  const upstream = createServer((request, response) => response.end('{}')).listen(0, '127.0.0.1');
  await new Promise((done) => upstream.once('listening', done));
  const printed = await initFor(`http://127.0.0.1:${upstream.address().port}`);
  const [, requests, token] = /seq (\d+)\).*?(Bearer [\w-]+)/.exec(printed);
  const gateway = spawn('npx', ['--no-install', 'weir', 'start', '--port', '0', '--admin-port', '0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  try {
    const url = await addressOf(gateway);
    const statuses = [];
    for (let count = 0; count < Number(requests); count++)
      statuses.push((await fetch(url, { headers: { Authorization: token } })).status);
    assert.deepEqual(statuses, [...Array(requests - 1).fill(200), 429]);
  } finally {
    process.kill(-gateway.pid, 'SIGTERM');
    upstream.closeAllConnections();
    upstream.close();
  }
}

/** Not synchronous, because this process serves the API that `weir init` asks. */
async function initFor(url) {
  const init = spawn('npx', ['--no-install', 'weir', 'init', '--upstream', url], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of init.stdout) printed += chunk;
  return printed;
}

async function addressOf(gateway) {
  for await (const line of createInterface({ input: gateway.stdout })) {
    if (line.includes('"weir is listening"')) {
      gateway.stdout.resume();
      return JSON.parse(line).url;
    }
  }
  throw new Error('weir start ended before it listened');
}

const PROGRAM = `import { createStore, type Limit } from '${name}';

const hourly: Limit = { name: 'hourly', owner: 'acme', limit: 10, windowSeconds: 3600 };
const daily: Limit = { name: 'daily', owner: 'acme', limit: 15, windowSeconds: 86_400 };
const store = createStore();
const first = await store.charge({ limits: [hourly, daily], cost: 6 });
const second = await store.charge({ limits: [hourly, daily], cost: 6 });
const left = first.outcome === 'admitted' ? first.buckets.map(({ remaining }) => remaining) : [];
console.log(first.outcome, second.outcome, left.join());
await store.close();
`;

function tryCounter() {
  writeFileSync(join(folder, 'counter.mts'), PROGRAM);
  const options = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,dom', '--types', ''];
  execFileSync(tsc, [...options, '--outDir', '.', 'counter.mts'], { cwd: folder, stdio: 'inherit' });
  assert.equal(run('node', 'counter.mjs'), 'admitted denied 4,9\n');
}

await tryGateway();
tryCounter();
console.log(`${name} works on Node ${process.version}`);
