import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { RevokeOptions } from '../../src/commands/revoke.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';
import { runWeirHere } from '../fixtures/run-here.ts';

/** A token of the identities file that `writeConfiguration` writes; it belongs to svc_3. */
const TOKEN = 'lonely';
const SECRET = 'zq-a-pasted-token';
const SIGNED = `eyJhbGciOiJSUzI1NiJ9.${SECRET}.${SECRET}`;

let keyPrefix: string;
let config: string;
const store = () => ({ kind: 'redis', url: sharedRedisUrl(), keyPrefix, deadlineMs: 5000 });

beforeEach(async () => {
  keyPrefix = uniquePrefix();
  config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store() });
});

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');

/** Everything that Redis keeps under the prefix of this test, names of keys included. */
async function contentOfRedis(): Promise<string> {
  const client = new Redis(sharedRedisUrl());
  const keys = await client.keys(`${keyPrefix}*`);
  const content = await Promise.all(
    keys.map(async (key) =>
      (await client.type(key)) === 'zset' ? client.zrange(key, '0', '-1') : client.get(key),
    ),
  );
  client.disconnect();
  return [...keys, ...content.flat()].join('\n');
}

describe('a token that was pasted in the wrong place revokes nothing, and is not repeated', () => {
  it.each<[Omit<RevokeOptions, 'config'>, string[]]>([
    [{ principal: 'person_1' }, [SECRET]],
    [{ principal: SECRET }, []],
    [{ principal: SIGNED }, []],
    [{ principal: `Bearer ${SECRET}` }, []],
    [{ token: `${SECRET} ${SECRET}` }, []],
    [{ undo: true }, [SECRET]],
    [{ list: true }, [SECRET]],
    [{ hours: SECRET, token: TOKEN }, []],
  ])('%j %j', async (options, others) => {
    const { stdout, stderr, failure } = await revokeHere({ config, ...options }, { others });
    expect(failure).toBeDefined();
    expect([stdout, stderr, failure].join('')).not.toContain(SECRET);
    expect(await contentOfRedis()).toBe('');
  });

  it('on the command line', async () => {
    const lines = [[SECRET], [`--${SECRET}`], ['--principal', 'person_1', `-${SECRET}`]];
    for (const line of lines) {
      const { code, stdout, stderr } = await runWeirHere(['revoke', '--config', config, ...line]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('Nothing was revoked.');
      expect(stderr).not.toContain(SECRET);
    }
    expect(await contentOfRedis()).toBe('');
  });
});

it('an API key of a further credential is revoked without a warning that no file has it', async () => {
  const stderrWith = async (settings: Record<string, unknown>) => {
    const files = { upstreamUrl: 'http://127.0.0.1:1', store: store(), settings };
    const { stderr, failure } = await revokeHere({ config: await writeConfiguration(files), token: SECRET });
    expect(failure).toBeUndefined();
    return stderr;
  };
  expect(await stderrWith({})).toContain('Was it copied whole?');
  const identity = { kind: 'api-keys', file: 'identities.yaml' };
  expect(await stderrWith({ credentials: [{ kind: 'header', name: 'X-API-Key', identity }] })).toBe('');
});

it.each([`sha256:${sha256(TOKEN).slice(0, 16)}`, `SHA256:${sha256(TOKEN)}0`, 'sha256:'])(
  '%s is not a digest, and revokes nothing',
  async (token) => {
    const { stdout, failure } = await revokeHere({ config, token });
    expect(failure).toBe(
      '--token: a digest has 64 hex digits after sha256:. A shortened one, as lists show it, names no token. Nothing was revoked.',
    );
    expect(stdout + (await contentOfRedis())).toBe('');
  },
);

it('a token of the identities file that is given as a principal is called a token', async () => {
  const { failure } = await revokeHere({ config, principal: TOKEN });
  expect(failure).toBe('--principal was given a token: use --token. Nothing was revoked.');
});

it('an unknown principal is called unknown, with the one that was meant', async () => {
  const { failure } = await revokeHere({ config, principal: 'svc_33' });
  expect(failure).toMatch(/^The principal is unknown: .* Did you mean svc_3\? Nothing was revoked\.$/);
  expect(await contentOfRedis()).toBe('');
});

it.each([
  ['as an option', TOKEN, ''],
  ['by its digest', `sha256:${sha256(TOKEN).toUpperCase()}`, ''],
  ['on standard input', '-', `${TOKEN}\n`],
  ['with the scheme of its header', '-', `  Bearer ${TOKEN}\r\n`],
])(
  'a token that is given %s is refused, and neither Redis nor a message has it',
  async (_how, token, input) => {
    const gateway = await startGateway({ store: store() });
    try {
      const { stdout, stderr, failure } = await revokeHere({ config, token }, { input });
      expect([stderr, failure]).toEqual(['', undefined]);
      expect(stdout).toContain(`sha256:${sha256(TOKEN)}`);
      await vi.waitFor(
        async () => expect((await gateway.send('GET', '/v3/things', { token: TOKEN })).status).toBe(401),
        { timeout: 60_000 },
      );
      expect(stdout + (await contentOfRedis())).not.toContain(TOKEN);
    } finally {
      await gateway.close();
    }
  },
);

it('a token that is not in the file is revoked with a warning, because it may be truncated', async () => {
  const { stdout, stderr, failure } = await revokeHere({ config, token: SECRET });
  expect(failure).toBeUndefined();
  expect(stderr).toMatch(/^Warning: .*identities\.yaml has no such token/);
  expect(stdout + stderr + (await contentOfRedis())).not.toContain(SECRET);
});
