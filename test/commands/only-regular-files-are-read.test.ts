import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigError, formatProblem } from '../../src/config/problem.ts';
import { readConfiguration } from '../../src/process/configuration.ts';
import { mountConfigMap } from '../fixtures/config-map.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const UPSTREAM = 'http://127.0.0.1:1';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'weir-files-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** What reading it would never end, or take all memory for. */
const STRANGE: Readonly<Record<string, readonly [make: () => string, message: string]>> = {
  'a device': [() => '/dev/zero', 'is a device, not a file'],
  'a named pipe': [
    () => {
      const path = join(folder(), 'pipe.yaml');
      execFileSync('mkfifo', [path]);
      return path;
    },
    'is a named pipe, not a file',
  ],
  'a folder': [folder, 'is a folder, not a file'],
  'a large file': [
    () => {
      const path = join(folder(), 'large.yaml');
      writeFileSync(path, '');
      truncateSync(path, 64 * 1024 * 1024 + 1);
      return path;
    },
    'is larger than 64 MiB',
  ],
  'a file in UTF-16': [
    () => {
      const path = join(folder(), 'utf-16.yaml');
      writeFileSync(path, '\uFEFF{}', 'utf16le');
      return path;
    },
    'is in UTF-16: save it as UTF-8',
  ],
  'a link to a device': [
    () => {
      const path = join(folder(), 'link.yaml');
      symlinkSync('/dev/zero', path);
      return path;
    },
    'is a device, not a file',
  ],
};

/** Every setting that names a file. */
const PLACES: Readonly<Record<string, (file: string) => Record<string, unknown>>> = {
  'the limits': (file) => ({ limits: { file } }),
  'the identities': (file) => ({ identity: { kind: 'static', file } }),
  'an OpenAPI document': (file) => ({ operations: { openapi: file } }),
  'a key file': (keyFile) => ({ identity: { kind: 'jwt', issuer: 'i', audience: 'a', keyFile } }),
  'a certificate of the upstream': (caFile) => ({
    upstream: { url: 'https://127.0.0.1:1', tls: { caFile } },
  }),
  'a certificate of the store': (caFile) => ({
    store: { kind: 'redis', url: 'rediss://127.0.0.1:1', tls: { caFile } },
  }),
};

async function problemsOf(config: string): Promise<string> {
  try {
    await readConfiguration(config, {});
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem).join('\n');
    throw error;
  }
}

describe.each(Object.entries(STRANGE))('%s is refused', (_what, [make, message]) => {
  it.each(Object.entries(PLACES))('as %s', async (_place, settingsOf) => {
    const file = make();
    const config = await writeConfiguration({ upstreamUrl: UPSTREAM, settings: settingsOf(file) });
    expect(await problemsOf(config)).toContain(`${file}: ${message}`);
  });

  it('as the settings', async () => {
    const file = make();
    expect(await problemsOf(file)).toMatch(new RegExp(`^${file}: ${message}`));
  });

  it('as what a $ref names', async () => {
    const file = make();
    const config = await writeConfiguration({ upstreamUrl: UPSTREAM });
    const openapi = {
      openapi: '3.1.0',
      info: { title: 't', version: '1' },
      paths: { '/v3/a': { $ref: file } },
    };
    writeFileSync(join(dirname(config), 'openapi.yaml'), JSON.stringify(openapi));
    expect(await problemsOf(config)).toContain(`${file}: ${message}`);
  });
});

it('a named pipe in a folder of overrides is refused', async () => {
  const overrides = folder();
  execFileSync('mkfifo', [join(overrides, 'pipe.yaml')]);
  const config = await writeConfiguration({
    upstreamUrl: UPSTREAM,
    settings: { limits: { file: 'limits.yaml', overrides: [overrides] } },
  });
  expect(await problemsOf(config)).toContain('pipe.yaml: is a named pipe, not a file');
});

it('a text without a size is read: the files of /proc have none', async () => {
  expect(await problemsOf('/proc/self/limits')).toContain('/proc/self/limits');
  expect(await problemsOf('/proc/self/limits')).not.toContain('cannot be read');
});

it('the symbolic links of a mounted ConfigMap are followed', async () => {
  const limits = mountConfigMap({ 'limits.yaml': {} });
  onTestFinished(() => limits.remove());
  const settings = { limits: { file: limits.file('limits.yaml'), overrides: [limits.folder] } };
  const config = await writeConfiguration({ upstreamUrl: UPSTREAM, settings: { ...settings } });
  expect(await problemsOf(config)).toBe('');
});

it('weir check ends with one sentence', async () => {
  const { code, stderr } = await runWeirHere(['check', '--config', '/dev/zero']);
  expect([code, stderr]).toEqual([1, '/dev/zero: is a device, not a file: --config names another file\n']);
});

it('a file that becomes a named pipe while the gateway runs changes nothing', async () => {
  const files = folder();
  mkdirSync(join(files, 'next'));
  writeFileSync(join(files, 'limits.yaml'), '{}');
  execFileSync('mkfifo', [join(files, 'next', 'limits.yaml')]);
  const upstream = await startUpstream();
  const weir = await startWeir({
    upstreamUrl: upstream.url,
    settings: { limits: { file: join(files, 'limits.yaml') } },
  });
  onTestFinished(async () => {
    await weir.close();
    await upstream.close();
  });
  renameSync(join(files, 'next', 'limits.yaml'), join(files, 'limits.yaml'));
  await vi.waitFor(
    () => expect(weir.lines.join('\n')).toContain('limits.yaml: is a named pipe, not a file'),
    { timeout: 60_000 },
  );
  const answer = await fetch(`${weir.url}/v3/things`, { headers: { Authorization: 'Bearer person' } });
  expect(answer.status).toBe(200);
});
