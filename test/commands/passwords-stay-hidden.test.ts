import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { runWeir } from '../fixtures/weir-process.ts';

const SECRET = 'zq/secret#of%the;team';
const COMMANDS = [
  ['check'],
  ['start'],
  ['operations'],
  ['explain', 'GET', '/v3/things'],
  ['revoke', '--principal', 'person_1'],
];

/** Each setting has a URL with a password, and something is wrong with it. */
const MISTAKES = {
  upstream: { url: `http://user:${SECRET}@host` },
  identity: { kind: 'introspection', url: `htps://user:${SECRET}@host`, clientId: 'a', clientSecret: 'b' },
  store: { kind: 'cluster', nodes: [`http://user:${SECRET}@host`, `redis://user:${SECRET}@host`] },
  operations: { openapi: `https://user:${SECRET}@host/openapi.yaml` },
  limits: { file: `https://user:${SECRET}@host/limits.yaml` },
  [`redis://user:${SECRET}@host`]: 1,
};

describe('no command prints the password of a URL', () => {
  it.each(COMMANDS)('weir %s', async (...command) => {
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings: MISTAKES });
    const { code, stdout, stderr } = await (command[0] === 'start' ? runWeir : runWeirHere)([
      ...command,
      '--config',
      file,
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('***@host');
    expect(stderr).not.toContain('zq/secret');
    expect(
      stderr.split('\n').filter((line) => /^ {4}at /.test(line)),
      stderr,
    ).toEqual([]);
  });

  it('an OpenAPI document that names a file by such a URL', async () => {
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
    const document = file.replace('weir.yaml', 'openapi.yaml');
    const openapi = JSON.parse(await readFile(document, 'utf8')) as { paths: Record<string, unknown> };
    openapi.paths['/v3/other'] = { $ref: 'https://user:zqsecret@host/paths.yaml' };
    await writeFile(document, JSON.stringify(openapi));
    const { code, stderr } = await runWeirHere(['check', '--config', file]);
    expect(code).toBe(1);
    expect(stderr).toContain('https://***@host/paths.yaml');
    expect(stderr).not.toContain('zqsecret');
  });
});
