import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The files of the image, in a folder without packages, and another folder to work in. */
let installed = '';
let elsewhere = '';

beforeAll(() => {
  installed = mkdtempSync(join(tmpdir(), 'weir-installed-'));
  elsewhere = mkdtempSync(join(tmpdir(), 'weir-elsewhere-'));
  for (const name of ['dist', 'lua', 'package.json']) {
    cpSync(join(ROOT, name), join(installed, name), { recursive: true });
  }
});

/** Runs the installed command. Once it prints the text `until`, it gets SIGTERM. @returns its output and the files that it loaded */
async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, until?: string) {
  const coverage = mkdtempSync(join(elsewhere, 'coverage-'));
  const child = spawn(process.execPath, [join(installed, 'dist/main.js'), ...args], {
    cwd: elsewhere,
    env: { PATH: process.env.PATH, ...env, NODE_V8_COVERAGE: coverage },
  });
  const lines: string[] = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    if (until !== undefined && line.includes(until)) child.kill('SIGTERM');
  });
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const [code] = await once(child, 'close');
  return {
    code,
    lines,
    errors,
    loaded: readdirSync(coverage).flatMap((file) => filesIn(join(coverage, file))),
  };
}

function filesIn(coverage: string): string[] {
  const { result } = JSON.parse(readFileSync(coverage, 'utf8')) as {
    readonly result: { readonly url: string }[];
  };
  return result.filter(({ url }) => url.startsWith('file:')).map(({ url }) => fileURLToPath(url));
}

const RARE = [
  '@grpc/grpc-js',
  'protobufjs',
  '@opentelemetry/sdk-trace-base',
  'pino-pretty',
  'standardwebhooks',
  'undici',
];

/** The packages of `RARE` that the files contain: the bundler writes the path of each module above its code. */
function rareIn(files: readonly string[]): string[] {
  const texts = files.map((file) => readFileSync(file, 'utf8'));
  return RARE.filter((name) => texts.some((text) => text.includes(`\n// node_modules/${name}/`)));
}

it.each(['dist/main.js', 'platform/dist/main.js'])('%s is executable, also for a link of npm', (program) => {
  expect(statSync(join(ROOT, program)).mode & 0o111).toBe(0o111);
});

it('checks a configuration without the packages that few gateways need', async () => {
  const settings = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const { code, lines, errors, loaded } = await run(['check', '-c', settings]);
  expect([code, errors]).toEqual([0, '']);
  expect(lines.join('\n')).toContain('is valid');
  expect(rareIn(loaded)).toEqual([]);
});

it('starts in any folder, and loads nothing but files of its own', async () => {
  const upstream = await startUpstream();
  const settings = await writeConfiguration({
    upstreamUrl: upstream.url,
    settings: { log: { level: 'info' } },
  });
  const { code, errors, loaded } = await run(['start', '-c', settings], {}, 'weir is listening');
  await upstream.close();
  expect([code, errors]).toEqual([0, '']);
  expect(loaded.filter((file) => !file.startsWith(join(installed, 'dist')))).toEqual([]);
  expect(rareIn(loaded)).toEqual([]);
});

it('starts without the client of fetch, and has it before the first request where an identity provider is called', async () => {
  const print =
    "process.once('exit', () => process.stderr.write(String(process.moduleLoadList.some((name) => name.endsWith('/undici')))))";
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(print)}`;
  const provider = { kind: 'introspection', url: 'http://127.0.0.1:1', clientId: 'a', clientSecret: 'b' };
  const seen: unknown[] = [];
  for (const identity of [{}, provider]) {
    const settings = await writeConfiguration({
      upstreamUrl: 'http://127.0.0.1:1',
      settings: { log: { level: 'info' }, identity },
    });
    const { errors } = await run(['start', '-c', settings], { NODE_OPTIONS }, 'weir is listening');
    seen.push(errors);
  }
  expect(seen).toEqual(['false', 'true']);
});

it('loads gRPC and OpenTelemetry where they are configured', async () => {
  const rules = {
    domain: 'a',
    descriptors: [{ key: 'k', rate_limit: { unit: 'second', requests_per_unit: 1 } }],
  };
  const settings = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { log: { level: 'info' }, decisions: { envoy: { port: 0, files: ['rules'] } } },
  });
  const folder = join(dirname(settings), 'rules');
  mkdirSync(folder);
  writeFileSync(join(folder, 'a.yaml'), JSON.stringify(rules));
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
  const { code, loaded } = await run(['start', '-c', settings], env, 'weir is listening');
  expect(code).toBe(0);
  expect(rareIn(loaded)).toEqual(RARE.slice(0, 3));
});

it('parses a large limits file in its thread', async () => {
  const accounts = Array.from({ length: 2_000 }, (_, index) => [
    `acct_${index}`,
    { 'account-read': 20 + index },
  ]);
  const limits = { accounts: Object.fromEntries(accounts) };
  const settings = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', limits });
  const { lines, loaded } = await run(['check', '-c', settings]);
  expect(lines.join('\n')).toContain('overrides for 2,000 accounts');
  expect(loaded).toContain(join(installed, 'dist/config/files/limits/parse-worker.js'));
});

it('names files of src in stack traces', async () => {
  const trace =
    'process.stdout.write = () => { process.stderr.write(new Error("here").stack); return true; }';
  const settings = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(trace)}`;
  const { errors } = await run(['check', '-c', settings], { NODE_OPTIONS });
  expect(errors).toMatch(/src\/commands\/check\/check\.ts:\d+:\d+/);
});
