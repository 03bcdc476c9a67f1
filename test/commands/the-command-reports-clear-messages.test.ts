import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { runWeir } from '../fixtures/weir-process.ts';

const UPSTREAM = 'http://127.0.0.1:1';

describe('weir', () => {
  it.each([[], ['start'], ['check'], ['demo']])('--help and --version work: %s', async (...command) => {
    const help = await runWeirHere([...command, '--help']);
    expect([help.code, help.stderr]).toEqual([0, '']);
    expect(help.stdout).toContain(`Usage: ${['weir', ...command].join(' ')}`);
    const version = await runWeirHere([...command, '--version']);
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it.each([
    [['usage', ''], "'' is invalid for argument 'id'. It is empty."],
    [['find', ' '], "' ' is invalid for argument 'id'. It is empty."],
    [['why', ''], "'' is invalid for argument 'request-id'. It is empty."],
    [['limit', 'set', '', 'account-read=5', '--why', 'x'], "'' is invalid for argument 'id'. It is empty."],
    [['limit', 'unset', '', '--why', 'x'], "'' is invalid for argument 'id'. It is empty."],
    [['limit', 'block', '', '--why', 'x'], "'' is invalid for argument 'id'. It is empty."],
    [['limit', 'unblock', ' ', '--why', 'x'], "' ' is invalid for argument 'id'. It is empty."],
    [['why', 'a'.repeat(129)], 'A request id has at most 128 characters: letters, digits, `.`, `_` and `-`.'],
    [['why', 'a/b'], 'A request id has at most 128 characters: letters, digits, `.`, `_` and `-`.'],
  ])('an id that cannot be one is refused before a gateway is asked: %s', async (args, message) => {
    const { code, stderr } = await runWeirHere([...args, '--url', UPSTREAM]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('check reports every problem in every file, and exits with 1', async () => {
    const file = await writeConfiguration({
      upstreamUrl: UPSTREAM,
      settings: { operations: { openapi: 'none.yaml' } },
    });
    await writeFile(join(dirname(file), 'limits.yaml'), 'windowSeconds: 0\ndefaults: { account-reed: 5 }\n');
    const { code, stderr } = await runWeirHere(['check', '--config', file]);
    expect(code).toBe(1);
    expect(stderr).toContain('windowSeconds');
    expect(stderr).toContain('account-reed');
    expect(stderr).toContain('none.yaml');
    expect(stderr).not.toContain('    at ');
  });

  it('check reports the problems of a file named by a valid setting, even if other settings are invalid', async () => {
    const file = await writeConfiguration({
      upstreamUrl: UPSTREAM,
      settings: { admin: { port: 'high' }, lissten: {} },
    });
    await writeFile(join(dirname(file), 'limits.yaml'), 'windowSeconds: 0\n');
    await writeFile(join(dirname(file), 'identities.yaml'), 'tokens: { a: nobody }\n');
    const { code, stderr } = await runWeirHere(['check', '--config', file]);
    expect(code).toBe(1);
    for (const word of ['admin.port', 'lissten', 'windowSeconds', 'nobody']) expect(stderr).toContain(word);
  });

  it('check reports an operation that costs more than a limit', async () => {
    const limits = { accounts: { acct_3: { 'account-read': 9 } } };
    const file = await writeConfiguration({ upstreamUrl: UPSTREAM, limits });
    const { code, stderr } = await runWeirHere(['check', '--config', file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/acct_3\.account-read.*9.*reportRead/s);
  });

  it('check reports that all files are valid, and exits with 0', async () => {
    const file = await writeConfiguration({ upstreamUrl: UPSTREAM });
    const { code, stdout } = await runWeirHere(['check', '--config', file]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('is valid')]);
  });

  it('a missing file is reported in one sentence', async () => {
    const { code, stderr } = await runWeir(['start', '--config', 'no-such.yaml']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^no-such\.yaml: does not exist.*\n$/);
  });

  it.each([
    ['WEIR_HOST', 'listen.host'],
    ['WEIR_ADMIN_HOST', 'admin.host'],
  ])('a host name in %s that does not resolve is reported in one sentence', async (variable, setting) => {
    const file = await writeConfiguration({ upstreamUrl: UPSTREAM });
    const { code, stderr } = await runWeir(['start', '--config', file], { [variable]: 'weir.invalid' });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `The host name weir.invalid cannot be resolved: set ${setting} or ${variable} to an address of this machine.\n`,
    );
  });

  it('an unknown option is reported as such, without --config', async () => {
    const { code, stderr } = await runWeirHere(['start', '--prot', '80']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^error: unknown option '--prot'\n\(Did you mean --port\?\)\n\(weir start --help lists its arguments and options\)\n/,
      ),
    ]);
  });

  it.each([
    ['--port', '80a', 'It must be a whole number from 0 to 65535.'],
    ['--admin-port', '65536', 'It must be a whole number from 0 to 65535.'],
    ['--upstream', 'localhost:80', 'It must be an http:// or https:// URL'],
    ['--upstream', 'http://localhost?x=1', 'It must be an http:// or https:// URL, without'],
  ])('%s %s is refused', async (option, value, reason) => {
    const { code, stderr } = await runWeirHere(['start', option, value]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`'${value}' is invalid. ${reason}`)]);
  });

  it('a busy port is reported in one sentence, and no process is left running', async () => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    const { port } = squatter.address() as { port: number };
    const upstream = await startUpstream();
    const file = await writeConfiguration({ upstreamUrl: upstream.url });
    const { code, stderr } = await runWeir(['start', '--config', file], { WEIR_PORT: String(port) });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `Port ${port} on 127.0.0.1 is in use: stop the program that uses it, or set listen.port, --port or WEIR_PORT to another port.\n`,
    );
    squatter.close();
    await upstream.close();
  });
});
