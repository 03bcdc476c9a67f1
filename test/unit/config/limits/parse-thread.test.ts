import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundle } from '../../../../scripts/build/bundle.ts';
import { GATEWAY } from '../../../../scripts/build/programs.ts';
import { NOTHING, parseLimits, parseOverrides } from '../../../../src/config/files/limits/parse-limits.ts';
import { type Job, receiveParsed, sendParsed } from '../../../../src/config/files/limits/parse-messages.ts';
import { ConfigError } from '../../../../src/config/problem.ts';

/** What arrives of a job when both ends of the thread run here. */
async function passedOn(job: Job) {
  const { port1, port2 } = new MessageChannel();
  try {
    sendParsed(job, port2);
    return await receiveParsed(port1, job.file);
  } finally {
    port1.close();
  }
}

function manyAccounts(count: number): string {
  const rows = Array.from({ length: count }, (_, index) => `  acct_${index}: { account-read: ${index + 1} }`);
  return ['accounts:', ...rows].join('\n');
}

describe('a file that is parsed in a thread', () => {
  test.each([0, 1, 250, 251, 1_001])(
    'arrives as if it had been parsed here, with %i overrides',
    async (count) => {
      const text = `windowSeconds: 3\n${count === 0 ? '' : manyAccounts(count)}`;
      expect(await passedOn({ kind: 'limits', text, file: 'l.yaml' })).toEqual(parseLimits(text, 'l.yaml'));
    },
  );

  test('can contain only overrides', async () => {
    const text = manyAccounts(3);
    expect(await passedOn({ kind: 'overrides', text, file: 'o.yaml', named: NOTHING })).toEqual(
      parseOverrides(text, 'o.yaml'),
    );
  });

  test('reports its problems as a ConfigError', async () => {
    const parsing = passedOn({ kind: 'limits', text: 'windowSeconds: 0', file: 'l.yaml' });
    await expect(parsing).rejects.toThrow(ConfigError);
    await expect(parsing).rejects.toThrow('l.yaml:1: windowSeconds');
  });

  test('is an error if the thread ends early', async () => {
    const { port1, port2 } = new MessageChannel();
    port2.close();
    await expect(receiveParsed(port1, 'l.yaml')).rejects.toThrow('the thread that parses l.yaml ended');
  });
});

describe('the thread', () => {
  let built: typeof import('../../../../src/config/files/limits/parse-thread.ts');

  // From source there is no thread to parse in.
  beforeAll(async () => {
    const output = mkdtempSync(join(tmpdir(), 'parse-thread-'));
    const module = 'config/files/limits/parse-thread';
    await bundle({ ...GATEWAY, output, entries: [module, 'config/files/limits/parse-worker'] });
    writeFileSync(join(output, 'package.json'), '{ "type": "module" }');
    built = (await import(pathToFileURL(join(output, `${module}.js`)).href)) as typeof built;
  });

  test('parses one large file after another, an invalid one included', async () => {
    const text = manyAccounts(2_000);
    const jobs = [text, `${text}\nother: 1`, text].map((one) => ({
      kind: 'overrides' as const,
      text: one,
      file: 'o.yaml',
      named: NOTHING,
    }));
    const parsed = await Promise.allSettled(jobs.map((job) => built.parseFile(job)));
    const value = parseOverrides(text, 'o.yaml');
    expect(parsed[0]).toEqual({ status: 'fulfilled', value });
    expect(parsed[1]).toMatchObject({
      status: 'rejected',
      reason: { name: 'ConfigError', message: expect.stringContaining('o.yaml:2002: other') },
    });
    expect(parsed[2]).toEqual({ status: 'fulfilled', value });
  });

  test('finds the line of a setting in a large file', async () => {
    const text = manyAccounts(2_000);
    const lines = text.split('\n');
    const line = await built.findLine(text, ['accounts', 'acct_1321', 'account-read']);
    expect(lines[(line ?? 0) - 1]).toContain('acct_1321');
    expect(await built.findLine(text, ['organizations', 'org_1'])).toBeUndefined();
  });
});
