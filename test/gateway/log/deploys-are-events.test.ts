import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { FleetSnapshot } from '../../../src/admin/fleet/snapshot.ts';
import { readConfiguration } from '../../../src/process/configuration.ts';
import { runGateway } from '../../../src/process/run.ts';
import { writeConfiguration } from '../../fixtures/configuration.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';

const SOON = { timeout: 30_000, interval: 100 };

const WHY = { why: 'launch', by: 'alice' };

/** Two replicas of the same files, and what they log. */
async function startTwo() {
  const store = uniqueRedisStore();
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    store,
    settings: { log: { level: 'info' } },
  });
  const start = async () => {
    const lines: string[] = [];
    const output = { write: (line: string) => void lines.push(line), flushSync() {} };
    const configuration = await readConfiguration(config, {});
    const gateway = await runGateway(configuration, { log: pino({ level: 'info' }, output), lines: output });
    onTestFinished(() => gateway.close());
    const events = (name: string) =>
      lines.map((line) => JSON.parse(line)).filter(({ msg, audit }) => msg === name && !audit);
    return { ...gateway, events };
  };
  const write = (file: string, content: object) =>
    writeFile(join(dirname(config), file), JSON.stringify(content));
  return { replicas: [await start(), await start()] as const, write };
}

const ask = (adminUrl: string, method: string, path: string, body?: object) =>
  fetch(`${adminUrl}${path}`, {
    method,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });

const changesAt = async (adminUrl: string) =>
  ((await (await ask(adminUrl, 'GET', '/fleet')).json()) as FleetSnapshot).changes;

const operations = (cost: number, more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'test', version: '3' },
  paths: {
    '/v3/things': { get: { operationId: 'listThings', 'x-weir': { cost }, responses: {} } },
    ...more,
  },
});

it('a deployed price is one line at each replica, one change of the fleet, and another version', async () => {
  const { replicas, write } = await startTwo();
  const version = async () =>
    /weir_operations_info\{sha="(\w+)"\} 1/.exec(
      await (await ask(replicas[0].adminUrl, 'GET', '/metrics')).text(),
    )?.[1];
  await write('openapi.yaml', operations(2));
  for (const { events } of replicas)
    await expect.poll(() => events('operations.changed').length, SOON).toBe(1);
  const before = await version();
  await write('openapi.yaml', operations(4));
  for (const { events } of replicas) {
    await expect.poll(() => events('operations.changed').length, SOON).toBe(2);
    expect(events('operations.changed')[1]).toMatchObject({
      added: 0,
      removed: 0,
      changed: 1,
      difference: [{ change: 'changed', operation: 'listThings', from: { cost: 2 }, to: { cost: 4 } }],
    });
  }
  expect(await version()).toBe(replicas[0].events('operations.changed')[1].sha);
  expect(await version()).not.toBe(before);
  for (const { adminUrl } of replicas) {
    await expect
      .poll(async () => (await changesAt(adminUrl))[0], SOON)
      .toMatchObject({ name: 'operations.changed', text: 'listThings 2 points -> 4 points', replicas: 2 });
  }
});

it('an operation that loses its tags or its validation, or gets another name, is named', async () => {
  const { replicas, write } = await startTwo();
  const [{ events }] = replicas;
  const paths = (list: object, report: object, id: string) => ({
    '/v3/things': { get: { operationId: 'listThings', responses: {}, ...list } },
    '/v3/reports': { post: { operationId: 'report', responses: {}, ...report } },
    '/v3/payees': { get: { operationId: id, responses: {} } },
  });
  const tags = { tags: ['heavy', 'slow'] };
  await write('openapi.yaml', operations(1, paths(tags, { 'x-weir': { validate: 'body' } }, 'list')));
  await expect.poll(() => events('operations.changed').length, SOON).toBe(1);
  await write('openapi.yaml', operations(1, paths({}, { 'x-weir': { validate: false } }, 'listPayees')));
  await expect.poll(() => events('operations.changed').length, SOON).toBe(2);
  expect(await changesAt(replicas[0].adminUrl)).toContainEqual(
    expect.objectContaining({
      text: [
        'listThings tags heavy slow -> no tags',
        'report validate body -> no validate',
        'listPayees operation list -> operation listPayees',
      ].join(', '),
    }),
  );
});

it('deployed identities are one bounded line without tokens', async () => {
  const { replicas, write } = await startTwo();
  const [{ events, adminUrl }] = replicas;
  const many = Array.from({ length: 30 }, (_, index) => `acct_n${index}`);
  await write('identities.yaml', {
    tokens: { 'a-secret-token': 'svc_1' },
    principals: { svc_1: { type: 'ServiceAccount', account: 'acct_2' } },
    accounts: Object.fromEntries(['acct_2', ...many].map((id) => [id, {}])),
  });
  await expect.poll(() => events('identities.changed').length, SOON).toBe(1);
  const [line] = events('identities.changed');
  expect(line.difference).toHaveLength(20);
  expect(line.difference[0]).toEqual({
    change: 'changed',
    what: 'principal',
    id: 'svc_1',
    from: { type: 'ServiceAccount', account: 'acct_1', actsFor: [] },
    to: { type: 'ServiceAccount', account: 'acct_2', actsFor: [] },
  });
  expect(line.omitted).toBe(line.added + line.removed + line.changed - 20);
  expect(JSON.stringify(line)).not.toContain('a-secret-token');
  await expect.poll(async () => (await changesAt(adminUrl))[0]?.name, SOON).toBe('identities.changed');
  expect((await changesAt(adminUrl))[0]?.text).toMatch(
    /^principal svc_1 account acct_1 -> account acct_2, .* more$/,
  );
});

it('what is set, revoked and blocked is a change, and so is its end', async () => {
  const { replicas } = await startTwo();
  const [{ adminUrl }, { events }] = replicas;
  const body = { ...WHY, for: '4s' };
  await ask(adminUrl, 'PUT', '/limits/live/accounts/acct_1', { ...body, 'account-read': 700 });
  await ask(adminUrl, 'PUT', '/blocks/accounts/acct_2', body);
  await ask(adminUrl, 'POST', '/revocations', { ...body, principal: 'svc_3' });
  const ended = {
    'live-limit.ended': { id: 'acct_1', bucket: 'account-read', from: { limit: 700 } },
    'block.ended': { scope: 'account', id: 'acct_2' },
    'revocation.ended': { kind: 'principal', target: 'svc_3' },
  };
  for (const [name, members] of Object.entries(ended)) {
    await expect.poll(() => events(name), SOON).toMatchObject([{ ...members, ...WHY }]);
  }
  expect(events('limits.changed')).toHaveLength(1);
  expect(events('block.made')).toHaveLength(1);
  expect(events('revocation.made')).toHaveLength(1);
  await expect
    .poll(
      async () => (await changesAt(adminUrl)).map(({ name, replicas: count }) => `${name} ${count}`).sort(),
      SOON,
    )
    .toEqual(
      [
        'block.ended',
        'block.made',
        'limits.changed',
        'live-limit.ended',
        'revocation.ended',
        'revocation.made',
      ].map((name) => `${name} 2`),
    );
  await ask(adminUrl, 'PUT', '/blocks/accounts/acct_2', { ...WHY, for: '5s' });
  await ask(adminUrl, 'DELETE', '/blocks/accounts/acct_2?why=over');
  await expect.poll(() => events('block.undone').length, SOON).toBe(1);
  // What is undone does not end as well.
  expect(events('block.ended')).toHaveLength(1);
});
