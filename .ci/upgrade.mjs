/**
 * Runs gateways of earlier versions beside today's, on one Redis, as a rolling upgrade and a rollback do: `node --import tsx .ci/upgrade.mjs`
 * after `npm run build`. Each earlier version is taken from the history and installed with its own packages. Needs redis-server and helm.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { loadAll } from 'js-yaml';
import { layOutPod } from '../test/fixtures/pod-files.ts';
import { startRedisServer } from '../test/fixtures/redis-server.ts';

const RELEASES = JSON.parse(readFileSync(new URL('releases.json', import.meta.url), 'utf8'));
/** 0.1.0 with the script that joined every charge of a slot; the others as they were released. */
const EARLIER = [
  { name: '0.1.0', commit: '0e98de86f1b203475d2bc41aab54a0c4e59e0ae0' },
  ...Object.entries(RELEASES).map(([name, commit]) => ({ name, commit })),
];

const LIMIT = 100;
const SHORT_LIMIT = 30;
const SHORT_SECONDS = 2;

const root = resolve(import.meta.dirname, '..');
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' });
if (git('rev-parse', '--is-shallow-repository').trim() === 'true') {
  console.log('UPGRADES FROM EARLIER VERSIONS ARE NOT TESTED HERE, because this clone has no history: git fetch --unshallow');
  process.exit(0);
}

const work = mkdtempSync(join(tmpdir(), 'weir-upgrade-'));
/** In the order in which they end. */
const cleanUps = [() => rmSync(work, { recursive: true, force: true })];

try {
  await Promise.all(EARLIER.map(install));
  for (const { name } of EARLIER) upgradeChart(name);
  readSettings(EARLIER.at(-1).name);
  const redis = await startRedisServer();
  cleanUps.push(() => redis.stop());
  const upstream = await startUpstream();
  for (const { name } of EARLIER) await rollingUpdates(name, redis.url, upstream);
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}

async function install({ name, commit }) {
  const folder = join(work, name);
  mkdirSync(folder);
  const archive = join(work, `${name}.tar`);
  execFileSync('git', ['archive', '--output', archive, commit], { cwd: root });
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  const npm = spawn('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(npm, 'exit');
  assert.equal(code, 0, `the packages of ${name} could not be installed`);
}

async function startUpstream() {
  const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

function programOf(version) {
  return ['--import', import.meta.resolve('tsx'), join(work, version, 'src/main.ts')];
}

/** A gateway of a version on a port of its own choice; `today` for the built one of this folder. */
async function startGateway(version, config) {
  const program = version === 'today' ? [join(root, 'dist/main.js')] : programOf(version);
  const child = spawn(process.execPath, [...program, 'start', '--config', config], {
    cwd: version === 'today' ? root : join(work, version),
    env: { PATH: process.env.PATH, WEIR_PORT: '0', WEIR_ADMIN_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUps.push(() => end(child));
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => reject(new Error(`the gateway of ${version} ended with ${code ?? signal}`)));
    lines.on('line', (line) => {
      if (line.includes('"weir is listening"')) resolve(JSON.parse(line).url);
      else if (/"level":[56]0/.test(line)) console.log(`${version}: ${line}`);
    });
  });
  return { url, stop: () => end(child) };
}

/** One configuration that every version accepts. */
function writeConfiguration(name, redis, upstream, windowSeconds, limit) {
  const folder = mkdtempSync(join(work, `${name}-`));
  const write = (file, value) => writeFileSync(join(folder, file), JSON.stringify(value));
  const accounts = Object.fromEntries(
    Array.from({ length: 9 }, (_, index) => [`acct_${index}`, { organization: `org_${index}` }]),
  );
  write('identities.yaml', {
    tokens: Object.fromEntries(Object.keys(accounts).map((account) => [`token-${account}`, account])),
    principals: Object.fromEntries(
      Object.keys(accounts).map((account) => [account, { type: 'ServiceAccount', account }]),
    ),
    accounts,
  });
  write('limits.yaml', { windowSeconds, defaults: { 'account-read': limit, 'organization-read': 2 * limit } });
  write('openapi.yaml', { openapi: '3.1.0', info: { title: 'Things', version: '1' }, paths: {} });
  write('weir.yaml', {
    listen: { host: '127.0.0.1' },
    admin: { host: '127.0.0.1' },
    upstream: { url: upstream },
    // A busy machine must not turn a slow answer into an uncounted request.
    store: { kind: 'redis', url: redis, keyPrefix: name, deadlineMs: 1000 },
    identity: { kind: 'static', file: 'identities.yaml' },
    operations: { openapi: 'openapi.yaml' },
    limits: { file: 'limits.yaml' },
  });
  return join(folder, 'weir.yaml');
}

/** Sends one request. */
async function ask({ url }, account) {
  const sentMs = performance.now();
  const response = await fetch(`${url}/things`, { headers: { Authorization: `Bearer token-${account}` } });
  await response.arrayBuffer();
  const answeredMs = performance.now();
  const { status, headers } = response;
  assert.ok(status === 200 || status === 429, `a request got ${status}`);
  assert.equal(headers.get('Service-RateLimit-Mode'), null, 'a request was not counted');
  const left = Number(/"account-read";r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1]);
  return { sentMs, answeredMs, isAdmitted: status === 200, left };
}

async function rollingUpdates(name, redis, upstream) {
  const long = writeConfiguration(`${name}-long`, redis, upstream, 3600, LIMIT);
  const [before, now] = await Promise.all([startGateway(name, long), startGateway('today', long)]);
  await keepCounts(`${name} to today`, before, now, 'acct_1');
  await keepCounts(`today to ${name}`, now, before, 'acct_2');
  await Promise.all([before.stop(), now.stop()]);
  const short = writeConfiguration(`${name}-short`, redis, upstream, SHORT_SECONDS, SHORT_LIMIT);
  const both = await Promise.all([startGateway(name, short), startGateway('today', short)]);
  await keepLimit(`${name} beside today`, both, 'acct_3');
  await Promise.all(both.map(({ stop }) => stop()));
}

/** What one version has counted is counted for the other, and together they admit exactly the limit. */
async function keepCounts(title, first, second, account) {
  let left;
  for (let spent = 0; spent < 20; spent++) ({ left } = await ask(first, account));
  assert.equal(left, LIMIT - 20, `${title}: counts of the first`);
  ({ left } = await ask(second, account));
  assert.equal(left, LIMIT - 21, `${title}: a count was lost`);
  const answers = await Promise.all(
    Array.from({ length: 2 * LIMIT }, (_, index) => ask(index % 2 === 0 ? first : second, account)),
  );
  const admitted = 21 + answers.filter(({ isAdmitted }) => isAdmitted).length;
  assert.equal(admitted, LIMIT, `${title}: admitted of a limit of ${LIMIT}`);
  console.log(`${title}: ${admitted} of ${LIMIT} points admitted, no count lost`);
}

/** In windows that come and go, both together admit no more than the limit, and no much less. */
async function keepLimit(title, gateways, account) {
  const endMs = performance.now() + 4 * SHORT_SECONDS * 1_000;
  const admitted = [];
  const client = async (gateway) => {
    while (performance.now() < endMs) {
      const answer = await ask(gateway, account);
      if (answer.isAdmitted) admitted.push(answer);
      await setTimeout(20);
    }
  };
  await Promise.all([...gateways, ...gateways].map(client));
  const lengthMs = SHORT_SECONDS * 1_000;
  // Only what was certainly decided within the window.
  const inWindow = ({ sentMs: from }) =>
    admitted.filter(({ sentMs, answeredMs }) => sentMs >= from && answeredMs < from + lengthMs).length;
  const fullest = Math.max(...admitted.map(inWindow));
  assert.ok(fullest <= SHORT_LIMIT, `${title}: ${fullest} points in a window, limit ${SHORT_LIMIT}`);
  assert.ok(admitted.length > 3 * SHORT_LIMIT, `${title}: only ${admitted.length} points in four windows`);
  console.log(`${title}: at most ${fullest} of ${SHORT_LIMIT} points in any window, ${admitted.length} in all`);
}

/** The values of an earlier chart render with today's, and change nothing that Kubernetes does not allow to change. */
function upgradeChart(name) {
  const { before, after } = renderBoth(name);
  let compared = 0;
  for (const [id, { spec }] of before) {
    const { spec: newSpec } = after.get(id) ?? {};
    for (const field of ['selector', 'clusterIP', 'volumeClaimTemplates', 'serviceName']) {
      if (newSpec === undefined || id.startsWith('NetworkPolicy ')) continue;
      assert.deepEqual(newSpec[field], spec?.[field], `${id}: ${field} cannot be changed by an upgrade`);
      compared++;
    }
  }
  const kept = [...before.keys()].filter((id) => after.has(id));
  assert.ok(kept.some((id) => id.startsWith('Deployment ')) && compared > 0);
  console.log(`the chart of ${name} to today's: ${kept.length} of ${before.size} objects are upgraded in place`);
}

/** A pod of an earlier version that starts again while it is replaced can read the settings that today's chart has for its values. */
function readSettings(name) {
  const { before, after } = renderBoth(name);
  const { spec } = before.get('Deployment weir').spec.template;
  const config = layOutPod(spec, [...after.values()], mkdtempSync(join(work, 'pod-')));
  const read = spawnSync(process.execPath, [...programOf(name), 'check', '--config', config], {
    cwd: join(work, name),
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
  });
  assert.equal(read.status, 0, `${name} cannot read the settings of today's chart: ${read.stderr}`);
  console.log(`${name} reads the settings of today's chart`);
}

/** The chart of an earlier version and today's, both with the values of the earlier one. */
function renderBoth(name) {
  const earlier = join(work, name, 'helm/weir');
  const values = join(earlier, 'values.yaml');
  return { before: render(earlier, values), after: render(join(root, 'helm/weir'), values) };
}

function render(chart, values) {
  const args = ['template', 'weir', chart, '--values', values];
  const objects = loadAll(execFileSync('helm', args, { encoding: 'utf8' })).filter(Boolean);
  return new Map(objects.map((one) => [`${one.kind} ${one.metadata.name}`, one]));
}
