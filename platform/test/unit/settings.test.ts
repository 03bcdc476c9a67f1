import { expect, test } from 'vitest';
import { optionsFromEnv, settleOptions } from '../../src/settings.ts';

const LISTEN = { host: '127.0.0.1', port: 0 };
const read = (env: NodeJS.ProcessEnv) => {
  const { seed, triggers, deliveries, database } = settleOptions({ ...LISTEN, ...optionsFromEnv(env) });
  return { seed, triggers, allowPrivate: deliveries.allowPrivate, database };
};

test('with PostgreSQL, demo data and deliveries to private addresses are off by default', () => {
  const url = 'postgres://db/weir';
  const off = { seed: false, triggers: false, allowPrivate: false };
  expect(read({ DATABASE_URL: url })).toEqual({ ...off, database: { kind: 'postgres', url } });
  expect(read({ DATABASE_URL: url, WEIR_PLATFORM_TRIGGERS: 'true', WEIR_PLATFORM_SEED: '1' })).toMatchObject({
    triggers: true,
    seed: true,
    allowPrivate: false,
  });
});

test('the embedded database has development defaults, and each can be turned off', () => {
  const on = { seed: true, triggers: true, allowPrivate: true };
  expect(read({})).toEqual({ ...on, database: { kind: 'memory' } });
  expect(read({ WEIR_PLATFORM_DATA_DIR: '/data' })).toEqual({
    ...on,
    database: { kind: 'directory', path: '/data' },
  });
  const closed = { WEIR_PLATFORM_ALLOW_PRIVATE_WEBHOOKS: 'false', WEIR_PLATFORM_TRIGGERS: 'false' };
  expect(read(closed)).toMatchObject({ seed: true, triggers: false, allowPrivate: false });
});
