import { expect, test } from 'vitest';
import { accessOptions, readUrl } from '../../../src/store/redis/connection/redis-options.ts';

test.each([
  ['redis://redis.internal', { host: 'redis.internal', port: 6379 }],
  ['redis://[::1]:7000/2', { host: '::1', port: 7000, db: 2 }],
  ['rediss://redis.internal:7000/0', { host: 'redis.internal', port: 7000, tls: {} }],
  ['redis://:p%40ss@h', { host: 'h', port: 6379, password: 'p@ss' }],
  ['redis://weir:secret@h', { host: 'h', port: 6379, username: 'weir', password: 'secret' }],
])('%s is read as it is meant', (url, options) => {
  expect(readUrl(url)).toEqual(options);
});

test('a Sentinel is looked for at its own port', () => {
  expect(readUrl('redis://sentinel', 26_379)).toEqual({ host: 'sentinel', port: 26_379 });
});

test('credentials of the settings take precedence over the credentials of a URL', () => {
  const settings = {
    deadlineMs: 25,
    username: 'weir',
    password: 'new',
    tls: { serverName: 'redis.internal' },
  };
  expect({ ...readUrl('redis://old:old@h'), ...accessOptions(settings) }).toMatchObject({
    username: 'weir',
    password: 'new',
    tls: { servername: 'redis.internal' },
  });
});
