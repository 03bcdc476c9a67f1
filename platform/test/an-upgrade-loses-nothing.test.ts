import { describe, expect, test } from 'vitest';
import { isWhole } from '../../test/fixtures/generated-cases.ts';
import { catalog, namesOf } from '../src/catalog/catalog.ts';
import { ACCT_1, ACCT_2, ACCT_3, type Body } from './fixtures/client.ts';
import { lastingDatabases } from './fixtures/databases.ts';
import { lists } from './fixtures/document.ts';
import { usePlatform } from './fixtures/platform.ts';
import { startReceiver } from './fixtures/receiver.ts';
import { readRelease, VERSIONS, withRelease } from './fixtures/releases/restore.ts';

const PEOPLE: Readonly<Record<string, Record<string, string>>> = {
  acct_1: ACCT_1,
  acct_2: ACCT_2,
  acct_3: ACCT_3,
};
const kinds = Object.entries(catalog).map(([kind, entry]) => ({ kind, ...namesOf(kind, entry) }));
/** Sessions are not listed. */
const WITHOUT_LIST = '/v3/platform/sessions';
/** The lists that are not of one kind of resource. */
const others = lists.filter(({ path }) => !path.includes('{') && kinds.every((kind) => kind.path !== path));

// PGlite runs the same migrations, and takes three times as long: once in CI, or where there is nothing else.
const cases = (isWhole ? lastingDatabases : lastingDatabases.slice(-1)).flatMap((database) =>
  (database.name === 'PostgreSQL' ? VERSIONS : VERSIONS.slice(-1)).map((version) => ({ version, database })),
);

describe.each(cases)('what $version wrote, on $database.name', ({ version, database }) => {
  const release = readRelease(version);
  // Within the life of what it wrote, and after the next probe of its endpoints.
  const startedMs = Date.now();
  const now = () => new Date(Date.parse(release.writtenAt) + 7_200_000 + Date.now() - startedMs);
  const platform = usePlatform(withRelease(database, version), { now, deliveries: { probeSeconds: 0.2 } });
  const clientOf = (account: string) => platform.as(PEOPLE[account] ?? {});

  // Every answer is checked against the document.
  test.each(Object.keys(PEOPLE))(
    'is in the lists of %s, and the first of each kind are read by their ids',
    async (account) => {
      const client = clientOf(account);
      const ofOthers = await Promise.all(others.map(({ path }) => client.walk(path)));
      const listed = new Set(ofOthers.flat().map(({ id }) => id));
      for (const { path } of kinds) {
        const items = await client.walk(`${path}?page[size]=100`);
        for (const { id } of items) listed.add(id);
        const some = items.slice(0, isWhole ? 5 : 2);
        const read = await Promise.all(some.map(({ id }) => client.get(`${path}/${id}`)));
        expect(read.map(({ body }) => body)).toEqual(some);
      }
      const written = release.writes.filter(
        (write) => write.account === account && write.path !== WITHOUT_LIST,
      );
      const ids = written.map(({ answer }) => (answer as Body).id);
      expect(ids.filter((id) => !listed.has(id))).toEqual([]);
    },
  );

  test.each(Object.keys(PEOPLE))('is named by events of %s that lead to their resources', async (account) => {
    const client = clientOf(account);
    const events = await client.walk('/v3/platform/events?page[size]=100');
    const paths = events.map((event) => {
      const path = kinds.find(({ kind }) => event.type.startsWith(`${kind}.`))?.path;
      return `${path}/${(event.data as unknown as Body).id}`;
    });
    const answers = await Promise.all(
      [...new Set(paths)].map(async (path) => [path, (await client.get(path)).status]),
    );
    expect(answers.filter(([, status]) => status !== 200)).toEqual([]);
    expect(answers.length).toBeGreaterThan(0);
  });

  test('is not written again by a repeated request', async () => {
    const logs = async () => {
      const walks = Object.keys(PEOPLE).map((account) => clientOf(account).walk('/v3/platform/audit-logs'));
      return (await Promise.all(walks)).map(({ length }) => length);
    };
    const before = await logs();
    for (const { account, method, path, key, body, status, answer } of release.writes) {
      const again = await clientOf(account).send(method, path, body, { 'idempotency-key': key });
      const { key: _shownOnce, ...kept } = answer as Body;
      expect([path, again.status]).toEqual([path, status]);
      expect(again.body).toMatchObject(kept);
    }
    expect(await logs()).toEqual(before);
  });

  test('stays in a search that was frozen', async () => {
    const { path, ids } = release.snapshot;
    expect((await clientOf('acct_1').walk(path)).map(({ id }) => id)).toEqual(ids);
  });

  test('goes out once the endpoint answers or the subscription is resumed', async () => {
    const client = clientOf('acct_1');
    for (const [{ path, held }, resume] of [
      [release.failing, {}],
      [release.paused, { status: 'Active' }],
    ] as const) {
      const receiver = await startReceiver();
      const written = release.writes.filter(({ answer }) =>
        path.endsWith(String((answer as Body | null)?.id)),
      );
      receiver.secrets.push(...written.map(({ answer }) => (answer as Body).secret));
      await client.send('PATCH', path, { url: receiver.url, ...resume });
      await client.poll(`${path}/deliveries?page[size]=100`, ({ data }) =>
        data.every(({ status }) => status === 'Delivered'),
      );
      expect([held, receiver.received.length]).toEqual([held, held]);
      expect((await client.get(path)).body.status).toBe('Active');
      await receiver.close();
    }
  });
});
