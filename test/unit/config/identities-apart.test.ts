import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundle } from '../../../scripts/build/bundle.ts';
import { GATEWAY } from '../../../scripts/build/programs.ts';
import { type Identities, parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { SlicedIdentities, slicesOf } from '../../../src/config/files/identities/slices.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { generatedCases, generatedCombinations } from '../../fixtures/generated-cases.ts';

const FILE = 'identities.yaml';

/** What arrives of a file when both ends run here. */
function passedOn(text: string): Identities | undefined {
  const sliced = new SlicedIdentities();
  let identities: Identities | undefined;
  for (const slice of slicesOf({ text, file: FILE })) identities = sliced.add(structuredClone(slice));
  return identities;
}

/** As plain values. */
const valuesOf = ({ tokens, principals, accounts }: Identities) => ({
  tokens: [...tokens],
  principals: [...principals],
  accounts: [...accounts],
});

/** An identities file with this many Accounts, each with a token. */
function fileOf(count: number, more: object = {}): string {
  const ids = Array.from({ length: count }, (_, index) => index);
  return JSON.stringify({
    tokens: Object.fromEntries(ids.map((id) => [`token-${id}`, `svc_${id}`])),
    principals: Object.fromEntries(
      ids.map((id) => [`svc_${id}`, { type: 'ServiceAccount', account: `acct_${id}` }]),
    ),
    accounts: Object.fromEntries(ids.map((id) => [`acct_${id}`, { organization: `org_${id % 10}` }])),
    ...more,
  });
}

describe('an identities file in slices', () => {
  const ids = ['a', 'b', 'c', 'd'].map((letter) => `acct_${letter}`);
  const account = fc.record(
    {
      organization: fc.constantFrom('org_1', 'org_2'),
      plan: fc.constant('gold'),
      periodStartsOn: fc.integer({ min: 1, max: 28 }),
      organizationLimit: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  const principal = fc.oneof(
    fc.record(
      {
        type: fc.constantFrom('Person', 'ServiceAccount'),
        account: fc.constantFrom(...ids),
        actsFor: fc.uniqueArray(fc.constantFrom(...ids)),
      },
      { requiredKeys: ['type', 'account'] },
    ),
    fc.record({ type: fc.constant('ServiceAccount'), organization: fc.constantFrom('org_1', 'org_3') }),
  );

  test('arrives as if it had been parsed here', () => {
    const files = fc.record({
      accounts: fc.tuple(...ids.map(() => account)),
      principals: fc.array(principal, { maxLength: 8 }),
      isDigest: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
    });
    fc.assert(
      fc.property(files, ({ accounts, principals, isDigest }) => {
        const tokenOf = (index: number) =>
          isDigest[index] ? `sha256:${`${index}`.repeat(64)}` : `t${index}`;
        const text = JSON.stringify({
          tokens: Object.fromEntries(principals.map((_, index) => [tokenOf(index), `svc_${index}`])),
          principals: Object.fromEntries(principals.map((one, index) => [`svc_${index}`, one])),
          accounts: Object.fromEntries(accounts.map((one, index) => [ids[index], one])),
        });
        const arrived = passedOn(text);
        expect(arrived && valuesOf(arrived)).toEqual(valuesOf(parseIdentities(text, FILE)));
      }),
      { numRuns: generatedCases(200) },
    );
  });

  test.each([0, 1, 499, 500, 501, 1_700])('arrives whole with %i Accounts', (count) => {
    const text = fileOf(count);
    const arrived = passedOn(text);
    expect(arrived && valuesOf(arrived)).toEqual(valuesOf(parseIdentities(text, FILE)));
  });

  test('has one object for Accounts that are alike, and one string for the id of each', () => {
    const { accounts, principals } = passedOn(fileOf(1_700)) ?? parseIdentities('', FILE);
    expect(new Set(accounts.values()).size).toBe(10);
    const sets = [...principals.values()].map((one) => ('actsFor' in one ? one.actsFor : undefined));
    expect(new Set(sets).size).toBe(1);
  });

  test('has its problems as a ConfigError', () => {
    expect(() => passedOn('tokens: { secret-token: nobody }')).toThrow(ConfigError);
    expect(() => passedOn('tokens: { secret-token: nobody }')).toThrow(
      'tokens["secr..."]: principal "nobody"',
    );
  });
});

describe('the process', () => {
  let built: typeof import('../../../src/config/files/identities/parse-process.ts');
  let url: string;

  // From source there is no process to parse in.
  beforeAll(async () => {
    const output = mkdtempSync(join(tmpdir(), 'parse-process-'));
    const modules = ['parse-process', 'parse-child'].map((name) => `config/files/identities/${name}`);
    await bundle({ ...GATEWAY, output, entries: modules });
    writeFileSync(join(output, 'package.json'), '{ "type": "module" }');
    url = pathToFileURL(join(output, `${modules[0]}.js`)).href;
    built = (await import(url)) as typeof built;
  });

  test('parses large files, an invalid one included', async () => {
    const text = fileOf(5_000);
    const [whole, wrong] = await Promise.allSettled([
      built.parseIdentitiesApart(text, FILE),
      built.parseIdentitiesApart(fileOf(5_000, { other: 1 }), FILE),
    ]);
    expect(whole.status === 'fulfilled' && valuesOf(whole.value)).toEqual(
      valuesOf(parseIdentities(text, FILE)),
    );
    expect(wrong).toMatchObject({
      status: 'rejected',
      reason: { name: 'ConfigError', message: expect.stringContaining('identities.yaml:1: other') },
    });
  });

  /** What a program writes in a process of its own, which nothing may end. It has a group of its own, so that a signal to it does not end this run. */
  async function outputOf(program: string, limits = ''): Promise<string> {
    const file = join(mkdtempSync(join(tmpdir(), 'parsing-program-')), 'program.mjs');
    writeFileSync(file, program);
    const command = ['-c', `${limits} exec "$0" "$1"`, process.execPath, file];
    const child = spawn('sh', command, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let written = '';
    child.stdout.on('data', (chunk) => {
      written += chunk;
    });
    expect(await once(child, 'close')).toEqual([0, null]);
    return written;
  }

  test.each([
    ['is missing', join(tmpdir(), 'no-such-folder', 'node'), 'ENOENT'],
    ['may not be run', import.meta.filename, 'EACCES'],
  ])('a file is refused, and nothing else ends, if the program of Node %s', async (_, path, code) => {
    const program = `
      import { parseIdentitiesApart } from ${JSON.stringify(url)};
      process.execPath = ${JSON.stringify(path)};
      const how = await parseIdentitiesApart(${JSON.stringify(fileOf(3_000))}, 'identities.yaml').then(
        () => 'parsed',
        ({ message }) => message,
      );
      // Whatever is reported later has been reported by then.
      setTimeout(() => console.log(how), 100);`;
    expect(await outputOf(program)).toBe(
      `the process that parses identities.yaml could not be run: spawn ${path} ${code}\n`,
    );
  });

  // A process that cannot be started has no id, and a signal to no id ends the gateway and its group.
  test.each(generatedCombinations([0, 1, 2, 3, 4, 5]))(
    'with %i file descriptors left, a file is parsed or refused',
    async (left) => {
      const program = `
      import { closeSync, openSync } from 'node:fs';
      import { parseIdentitiesApart } from ${JSON.stringify(url)};
      // Loads what a process needs to start.
      await parseIdentitiesApart(${JSON.stringify(fileOf(3_000))}, 'identities.yaml');
      const open = [];
      try {
        for (;;) open.push(openSync('/dev/null'));
      } catch {
        for (let count = 0; count < ${left}; count++) closeSync(open.pop());
      }
      const how = await parseIdentitiesApart(${JSON.stringify(fileOf(3_000))}, 'identities.yaml').then(
        () => 'parsed',
        ({ message }) => message,
      );
      setImmediate(() => console.log(how));`;
      expect(await outputOf(program, 'ulimit -n 64 &&')).toMatch(
        /^(parsed|the process that parses identities\.yaml (could not be run: spawn .* EMFILE|ended before it finished .*))$/m,
      );
    },
  );
});
