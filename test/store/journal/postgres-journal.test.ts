import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import { calendarOf } from '../../../src/domain/limits/calendar.ts';
import { Journal } from '../../../src/store/journal/journal.ts';
import { PostgresJournal } from '../../../src/store/journal/postgres.ts';
import { PendingSums } from '../../../src/store/journal/sums.ts';
import { bucketKey } from '../../../src/store/keys.ts';
import { type RecordedSum, recordedLimit } from '../../../src/store/store.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';

const postgresUrl = inject('postgresUrl');

const open: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** 2026-11-25 00:00 UTC. */
const MINUTE = Date.UTC(2026, 10, 25) / 60_000;

const LIMIT = recordedLimit({ scope: 'account', name: 'account-day', windowSeconds: 86_400 });

const bucketOf = (owner: string) => {
  return { key: bucketKey('weir', owner, LIMIT.name, owner), record: LIMIT, owner };
};

const sumOf = (owner: string, points: number, minute = MINUTE): RecordedSum => {
  return { ...bucketOf(owner), operation: 'listPayees', minute, points, requests: 1, refused: 0 };
};

const DAY = { from: new Date('2026-11-25T00:00:00Z'), to: new Date('2026-11-26T00:00:00Z'), timeZone: 'UTC' };

async function database() {
  const url = await createDatabase(postgresUrl ?? '');
  const openJournal = (fleet = 'weir') => {
    const journal = new PostgresJournal(url, fleet);
    open.push(journal);
    return journal;
  };
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  open.push({ close: () => client.end() });
  return { url, openJournal, client };
}

/** A server that passes everything on, and what each of its clients has sent. */
async function relayTo(url: string) {
  const { host, port, user = '', database: name = '' } = new pg.Client({ connectionString: url });
  const path = `${host}/.s.PGSQL.${port}`;
  const sent: Buffer[][] = [];
  const relay = await startTcpUpstream((client) => {
    const chunks: Buffer[] = [];
    sent.push(chunks);
    const server = connect(host.startsWith('/') ? { path } : { host, port });
    server.on('error', () => client.destroy());
    client.on('data', (chunk: Buffer) => chunks.push(chunk)).pipe(server);
    server.pipe(client);
  });
  open.push(relay);
  return { relayedUrl: `postgres://${user}@${new URL(relay.url).host}/${name}`, sent };
}

/** Of one client of PostgreSQL: the names of its settings, the names of its statements, and its simple queries. */
function messagesIn(sent: Buffer) {
  const startLength = sent.readInt32BE(0);
  const settings = sent
    .toString('utf8', 8, startLength)
    .split('\0')
    .filter((_, index) => index % 2 === 0);
  const parsed: string[] = [];
  const queries: string[] = [];
  for (let at = startLength; at < sent.length; at += 1 + sent.readInt32BE(at + 1)) {
    const [text = ''] = sent.toString('utf8', at + 5, at + 1 + sent.readInt32BE(at + 1)).split('\0', 1);
    const type = String.fromCharCode(sent[at] ?? 0);
    if (type === 'P') parsed.push(text);
    if (type === 'Q') queries.push(text);
  }
  return { settings: settings.filter((name) => name !== '').sort(), parsed, queries };
}

const pointsOf = async (journal: PostgresJournal, owner: string) => {
  const rows = await journal.past('account', owner, DAY);
  return rows.reduce((points, row) => points + row.points, 0);
};

describe.skipIf(postgresUrl === undefined)('the tables of the journal', () => {
  test('have each batch once, however often it is sent', async () => {
    const { openJournal } = await database();
    const journal = openJournal();
    await journal.write('replica-1', 1, [sumOf('acct_1', 5)]);
    await journal.write('replica-1', 1, [sumOf('acct_1', 5)]);
    await Promise.all([1, 2, 3].map(() => journal.write('replica-1', 2, [sumOf('acct_1', 7)])));
    await journal.write('replica-2', 1, [sumOf('acct_1', 100)]);
    await journal.write('replica-1', 1, [sumOf('acct_1', 5)]);
    expect(await pointsOf(journal, 'acct_1')).toBe(112);
  });

  test('are written and read through a pooler, which knows neither further parameters of a connection nor named statements', async () => {
    const { url } = await database();
    const { relayedUrl, sent } = await relayTo(url);
    const journal = new PostgresJournal(relayedUrl, 'weir');
    open.push(journal);
    await journal.write('replica-1', 1, [sumOf('acct_1', 5)]);
    await journal.recovery.attend('replica-1', 0);
    await journal.recovery.alone(async (client) => {
      expect((await journal.recovery.present(client).next()).done).toBe(true);
    });
    expect(await journal.recovery.countsOf([bucketOf('acct_1').key])).toEqual({ keys: [], texts: [] });
    expect(await pointsOf(journal, 'acct_1')).toBe(5);

    const connections = sent.map((chunks) => messagesIn(Buffer.concat(chunks)));
    expect(connections.length).toBeGreaterThan(0);
    for (const { settings, parsed, queries } of connections) {
      expect(settings).toEqual(['application_name', 'client_encoding', 'database', 'user']);
      expect(parsed.filter((name) => name !== '')).toEqual([]);
      expect(queries[0]).toBe('set statement_timeout = 10000');
    }
    expect(connections.flatMap(({ parsed }) => parsed).length).toBeGreaterThan(4);
  });

  test('are made once by replicas that start together, and used by a release that knows fewer of them', async () => {
    const { openJournal, client } = await database();
    await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        openJournal().write(`replica-${index}`, 1, [sumOf('acct_1', 1)]),
      ),
    );
    await client.query('update weir_journal_version set version = 1000');
    const older = openJournal();
    await older.write('older', 1, [sumOf('acct_1', 1)]);
    expect(await pointsOf(older, 'acct_1')).toBe(9);
    expect((await client.query('select version from weir_journal_version')).rows).toEqual([
      { version: 1000 },
    ]);
  });

  test('take writes of many replicas to the same rows without a deadlock', async () => {
    const { openJournal } = await database();
    const owners = Array.from({ length: 200 }, (_, index) => `acct_${index}`);
    const replicas = [1, 2, 3, 4].map((number) => ({ name: `replica-${number}`, journal: openJournal() }));
    const written = replicas.map(async ({ name, journal }, index) => {
      const order = index % 2 === 0 ? owners : owners.toReversed();
      for (let sequence = 1; sequence <= 10; sequence++)
        await journal.write(
          name,
          sequence,
          order.map((owner) => sumOf(owner, 1)),
        );
    });
    await Promise.all(written);
    for (const owner of ['acct_0', 'acct_199']) expect(await pointsOf(openJournal(), owner)).toBe(40);
  });

  test('accept any id: of a megabyte, with NUL, half a surrogate pair or quotes', async () => {
    const { openJournal } = await database();
    const journal = openJournal();
    const owners = [
      'x'.repeat(1_000_000),
      `x${'\0'}y`,
      '\uD800',
      `'; drop table weir_journal; --`,
      '',
      '{"a":1}',
      '\\',
    ];
    await journal.write(
      'replica',
      1,
      owners.map((owner) => sumOf(owner, 3)),
    );
    for (const owner of owners) expect(await pointsOf(journal, owner)).toBe(3);
  });

  test('count beyond 2^32', async () => {
    const { openJournal } = await database();
    const journal = openJournal();
    await journal.write('replica', 1, [sumOf('acct_1', 2 ** 52)]);
    await journal.write('replica', 2, [sumOf('acct_1', 1)]);
    expect(await pointsOf(journal, 'acct_1')).toBe(2 ** 52 + 1);
  });

  test('have one row of present counts for each month, and about a hundred for each window, however many minutes were counted', async () => {
    const { openJournal, client } = await database();
    const [journal, calendar] = [openJournal(), calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 })];
    const nowMinute = Math.floor(Date.now() / 60_000);
    const sums = Array.from({ length: 1_430 }, (_, index) => sumOf('acct_1', 1, nowMinute - index));
    const monthKey = 'weir:1:{acct_1}:account-month.p:acct_1';
    const record = recordedLimit({ ...LIMIT, name: 'account-month', calendar });
    const inMonth = sums.map((sum) => ({ ...sum, record, key: monthKey }));
    await journal.write('replica', 1, [...sums, ...inMonth]);
    await journal.write('replica', 2, [...sums, ...inMonth]);
    const { rows } = await client.query(
      'select key, count(*)::int as rows, sum(points)::int as points from weir_journal_counts where until > $1 group by key order by key',
      [calendar.at(Date.now()).startMs / 1_000],
    );
    const inThisMonth = sums.filter(
      ({ minute }) => minute * 60_000 >= calendar.at(Date.now()).startMs,
    ).length;
    expect(rows[0]).toMatchObject({ key: bucketOf('acct_1').key, points: 2 * sums.length });
    expect(rows[0].rows).toBeLessThanOrEqual(104);
    expect(rows[1]).toEqual({ key: monthKey, rows: 1, points: 2 * inThisMonth });
    await client.query('update weir_journal_counts set until = 1');
    await journal.tidy();
    expect((await client.query('select from weir_journal_counts')).rowCount).toBe(0);
  });

  test.each([
    ['after the present period began', 60, 30, 170],
    ['before the present period began', 60, -60, 70],
    ['in the last minute before the present period began', 60, 0, 70],
    ['after the present period began, and its own has not ended', 3_600, 30, 170],
    ['before the present period began, and its own has not ended', 3_600, -60, 70],
  ])(
    'have points in a limit with another calendar that were charged %s',
    async (_, until, charged, points) => {
      const { openJournal, client } = await database();
      const journal = openJournal();
      const nowS = Math.floor(Date.now() / 1_000);
      const insert = (key: string, start: number, end: number, lastAt: number, counted: number) =>
        client.query('insert into weir_journal_counts values ($1, $2, $3, $4, null, $5, $6)', [
          ...['weir', key, start, end, lastAt, counted],
        ]);
      await journal.write('replica', 1, []);
      const start = nowS - 900;
      await insert('changed', start - 1_800, nowS - 600 + until, start + charged, 100);
      await insert('changed', start, start + 3_600, nowS, 70);
      await insert('ended', start - 3_600, nowS - 120, start - 60, 500);
      await journal.tidy();
      const { keys, texts } = await journal.recovery.countsOf(['changed', 'ended']);
      expect(keys).toEqual(['changed']);
      expect(texts[0]?.split(' ').at(-1)).toBe(`${points}`);
      const left = await client.query("select from weir_journal_counts where key = 'ended'");
      expect(left.rowCount).toBe(0);
    },
  );

  test('have an owner that is used every minute by quarters of an hour, and drop rows after 400 days', async () => {
    const { openJournal, client } = await database();
    const journal = openJournal();
    const day = Array.from({ length: 1_440 }, (_, index) => sumOf('acct_1', 1, MINUTE + index));
    await journal.write('replica', 1, day);
    const { rows } = await client.query('select count(*)::int as rows from weir_journal');
    expect(rows).toEqual([{ rows: 96 }]);
    // Kathmandu is three quarters of an hour apart from the next full hour of UTC.
    const from = new Date('2026-11-24T18:15:00Z');
    const past = await journal.past('account', 'acct_1', { from, to: DAY.to, timeZone: 'Asia/Kathmandu' });
    expect(past.map((row) => [row.day, row.points])).toEqual([
      ['2026-11-25', 1_095],
      ['2026-11-26', 345],
    ]);
    await journal.write('replica', 2, [sumOf('acct_1', 1, Math.floor(Date.now() / 60_000) - 401 * 1_440)]);
    await journal.tidy();
    expect(await client.query('select from weir_journal')).toMatchObject({ rowCount: 96 });
  });
});

describe.skipIf(postgresUrl === undefined)('old rows', () => {
  const old = async (client: pg.Client, rows: number) => {
    await client.query(
      `insert into weir_journal select 'weir', 'account', 'acct_' || number, now() - interval '401 days', 'day', '', 1, 1, 0
       from generate_series(1, $1::int) as number`,
      [rows],
    );
    await client.query(
      "insert into weir_journal_counts select 'weir', number::text, 0, 1, null, 1, 1 from generate_series(1, $1::int) as number",
      [rows],
    );
  };
  const countIn = async (client: pg.Client, table: string) =>
    (await client.query(`select count(*)::int as rows from ${table}`)).rows[0]?.rows;
  test('are dropped in parts, between which counts are written, however many there are', async () => {
    const { openJournal, client } = await database();
    const journal = openJournal();
    await journal.write('replica', 1, [sumOf('acct_1', 1)]);
    await old(client, 45_000);
    const left: number[] = [];
    await journal.tidy(async () => {
      left.push(await countIn(client, 'weir_journal'));
      return true;
    });
    expect([...new Set(left)]).toEqual([25_001, 5_001, 1]);
    expect(await countIn(client, 'weir_journal_counts')).toBeLessThanOrEqual(1);
    expect(await pointsOf(journal, 'acct_1')).toBe(1);
  });

  test('of which one kind cannot be dropped do not keep the others, and the error is reported', async () => {
    const { openJournal, client } = await database();
    const journal = openJournal();
    await journal.write('replica', 1, [sumOf('acct_1', 1)]);
    await old(client, 10);
    await client.query(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create trigger refuse before delete on weir_journal for each row execute function refuse()`);
    await expect(journal.tidy()).rejects.toThrow(/^no$/);
    expect(await countIn(client, 'weir_journal')).toBe(11);
    expect(await countIn(client, 'weir_journal_counts')).toBeLessThanOrEqual(1);
  });

  test('are dropped no longer when the journal is to stop', async () => {
    const { openJournal, client } = await database();
    const journal = openJournal();
    await journal.write('replica', 1, [sumOf('acct_1', 1)]);
    await old(client, 45_000);
    await journal.tidy(async () => false);
    expect(await countIn(client, 'weir_journal')).toBe(25_001);
    expect(await countIn(client, 'weir_journal_counts')).toBeGreaterThanOrEqual(45_000);
  });
});

test('a journal that cannot drop old rows says so, and not that it cannot be written', async () => {
  const observed = new Observed();
  const written: string[] = [];
  const database = {
    write: async (replica: string) => void written.push(replica),
    tidy: () => Promise.reject(new Error('canceled')),
    close: async () => undefined,
  };
  const startMs = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => startMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const journal = new Journal(database, { flushMs: 1, replica: 'r' }, observed);
  vi.mocked(performance.now).mockImplementation(() => startMs + 3_600_000);
  await expect.poll(() => observed.untidy).toEqual(['canceled']);
  journal.add(bucketOf('acct_1'), 'listPayees', MINUTE * 60e6, 'admitted', 3);
  await expect.poll(() => written).toEqual(['r']);
  await journal.close();
  expect(observed.failed).toBe(0);
});

test.each([
  [0.9, 1],
  [0.1, 0],
])(
  'old rows are dropped in the share of an hour for which a replica has lived: after 12 minutes and %f',
  async (random, dropped) => {
    vi.spyOn(Math, 'random').mockReturnValue(random);
    let tidied = 0;
    let written = 0;
    const database = {
      write: async () => void written++,
      tidy: async () => void tidied++,
      close: async () => undefined,
    };
    const startMs = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => startMs);
    onTestFinished(() => void vi.restoreAllMocks());
    const journal = new Journal(database, { flushMs: 1, replica: 'r' }, new Observed());
    vi.mocked(performance.now).mockImplementation(() => startMs + 12 * 60_000);
    journal.add(bucketOf('acct_1'), 'listPayees', MINUTE * 60e6, 'admitted', 3);
    await expect.poll(() => written).toBe(1);
    journal.add(bucketOf('acct_1'), 'listPayees', MINUTE * 60e6, 'admitted', 3);
    await expect.poll(() => written).toBe(2);
    expect(tidied).toBe(dropped);
    await journal.close();
  },
);

describe.skipIf(postgresUrl === undefined)('a recovery', () => {
  test('of a replica that is gone without a word does not keep another one waiting', async () => {
    const { url } = await database();
    const silentMs = 300;
    const [gone, other] = [
      new PostgresJournal(url, 'weir', silentMs),
      new PostgresJournal(url, 'weir', silentMs),
    ];
    open.push(gone, other);
    let say: (() => void) | undefined;
    const lasts = new Promise<void>((resolve) => {
      say = resolve;
    });
    const begun = new Promise<void>((resolve) => {
      gone.recovery
        .alone(async () => {
          resolve();
          // It holds the lock, and sends nothing.
          await lasts;
        })
        .then(
          () => outcomes.push('committed'),
          () => outcomes.push('lost'),
        );
    });
    const outcomes: string[] = [];
    await begun;
    await other.recovery.alone(async () => void outcomes.push('recovered'));
    say?.();
    await expect.poll(() => outcomes).toEqual(['recovered', 'lost']);
  });

  test('is not silent while it waits for the writes of others', async () => {
    const { url } = await database();
    const silentMs = 300;
    const journal = new PostgresJournal(url, 'weir', silentMs);
    open.push(journal);
    await journal.recovery.attend('another', 0);
    await journal.recovery.alone((client) => journal.recovery.flushAll(client, 'a1', 4 * silentMs));
    expect(await journal.recovery.attend('another', 0)).toMatchObject({ asked: 1, reading: 1 });
  });

  test('that works at the store for a long time keeps its turn, if it speaks meanwhile', async () => {
    const { url } = await database();
    const silentMs = 300;
    const journal = new PostgresJournal(url, 'weir', silentMs);
    open.push(journal);
    const longWork = async (speak: () => void) => {
      for (let count = 0; count < 12; count++) {
        await setTimeout(silentMs / 3);
        speak();
      }
    };
    await journal.recovery.alone((_, speak) => longWork(speak));
    await expect(journal.recovery.alone(() => longWork(() => {}))).rejects.toThrow();
  });

  test('may be silent for three seconds, after which PostgreSQL ends it, also while it sends an answer', async () => {
    const { openJournal } = await database();
    const shown: unknown[] = [];
    await openJournal().recovery.alone(async (client) => {
      for (const name of ['idle_in_transaction_session_timeout', 'tcp_user_timeout'])
        shown.push(
          (await client.query('select setting from pg_settings where name = $1', [name])).rows[0]?.setting,
        );
    });
    expect(shown[0]).toBe('3000');
    // A Unix socket has none.
    expect(['3000', '0']).toContain(shown[1]);
  });
});

class Observed {
  written = 0;
  failed = 0;
  dropped = 0;
  journalWritten = (sums: number) => {
    this.written += sums;
  };
  journalFailed = () => {
    this.failed += 1;
  };
  untidy: string[] = [];
  journalUntidy = ({ message }: Error) => {
    this.untidy.push(message);
  };
  journalDropped = (points: number) => {
    this.dropped += points;
  };
}

describe.skipIf(postgresUrl === undefined)('a journal', () => {
  const SETTINGS = { flushMs: 20 };
  const add = (journal: Journal, owner: string, points: number) =>
    journal.add(bucketOf(owner), 'listPayees', MINUTE * 60e6, 'admitted', points);

  test('writes what was added, and what is left when it closes', async () => {
    const { openJournal } = await database();
    const [tables, observed] = [openJournal(), new Observed()];
    const own = openJournal();
    open.splice(open.indexOf(own), 1);
    const journal = new Journal(own, { ...SETTINGS, replica: randomUUID() }, observed);
    for (let count = 0; count < 100; count++) add(journal, `acct_${count % 10}`, 2);
    await expect.poll(() => pointsOf(tables, 'acct_3')).toBe(20);
    await expect.poll(() => journal.lagSeconds).toBe(0);
    add(journal, 'acct_3', 1);
    await journal.close();
    expect(await pointsOf(tables, 'acct_3')).toBe(21);
    expect(observed.dropped).toBe(0);
  });

  test('keeps sums while PostgreSQL refuses, and writes each once', async () => {
    const { openJournal, client } = await database();
    const [tables, observed] = [openJournal(), new Observed()];
    const own = openJournal();
    open.splice(open.indexOf(own), 1);
    const journal = new Journal(own, { ...SETTINGS, replica: 'replica' }, observed);
    add(journal, 'acct_1', 1);
    await expect.poll(() => pointsOf(tables, 'acct_1')).toBe(1);
    await client.query('alter table weir_journal rename to away');
    add(journal, 'acct_1', 10);
    await expect.poll(() => observed.failed).toBeGreaterThan(0);
    add(journal, 'acct_1', 100);
    await setTimeout(50);
    expect(journal.lagSeconds).toBeGreaterThan(0);
    await client.query('alter table away rename to weir_journal');
    await expect.poll(() => pointsOf(tables, 'acct_1')).toBe(111);
    await journal.close();
    expect(observed.dropped).toBe(0);
  });

  test('keeps sums while the disk of PostgreSQL is full, and writes each once', async () => {
    const { openJournal, client } = await database();
    const [tables, observed] = [openJournal(), new Observed()];
    const own = openJournal();
    open.splice(open.indexOf(own), 1);
    const journal = new Journal(own, { ...SETTINGS, replica: 'replica' }, observed);
    add(journal, 'acct_1', 1);
    await expect.poll(() => pointsOf(tables, 'acct_1')).toBe(1);
    await client.query(
      `create function full_disk() returns trigger language plpgsql as
         $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
       create trigger full_disk before insert on weir_journal for each row execute function full_disk()`,
    );
    add(journal, 'acct_1', 10);
    await expect.poll(() => observed.failed).toBeGreaterThan(0);
    add(journal, 'acct_1', 100);
    await client.query('drop trigger full_disk on weir_journal');
    await expect.poll(() => pointsOf(tables, 'acct_1')).toBe(111);
    await journal.close();
    expect(observed.dropped).toBe(0);
  });

  test('drops only the value that PostgreSQL does not accept', async () => {
    const { openJournal } = await database();
    const [tables, observed] = [openJournal(), new Observed()];
    const own = openJournal();
    open.splice(open.indexOf(own), 1);
    const journal = new Journal(own, { ...SETTINGS, replica: 'replica' }, observed);
    for (let count = 0; count < 50; count++) add(journal, `acct_${count}`, 1);
    add(journal, 'acct_7', 1e300);
    await expect.poll(() => observed.dropped).toBeGreaterThan(0);
    await journal.close();
    expect(await pointsOf(tables, 'acct_6')).toBe(1);
    expect(await pointsOf(tables, 'acct_49')).toBe(1);
    expect(await pointsOf(tables, 'acct_7')).toBe(0);
  });
});

test('a journal closes although its database does not answer, and says what it lost', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const never = () => new Promise<never>(() => undefined);
  const observed = new Observed();
  const journal = new Journal(
    { write: never, tidy: never, close: never },
    { flushMs: 1, replica: 'r' },
    observed,
  );
  journal.add(bucketOf('acct_1'), 'listPayees', MINUTE * 60e6, 'admitted', 3);
  await vi.waitFor(() => expect(journal.lagSeconds).toBeGreaterThan(0.05));
  journal.add(bucketOf('acct_1'), 'listPayees', MINUTE * 60e6, 'admitted', 4);
  const closed = journal.close();
  await vi.advanceTimersByTimeAsync(5_500);
  await closed;
  expect(observed.dropped).toBe(7);
});

describe('pending sums', () => {
  test('join the minutes of a quarter of an hour when there are too many', () => {
    const sums = new PendingSums(10);
    const bucket = bucketOf('acct_1');
    for (let minute = 0; minute < 150; minute++)
      expect(sums.add(bucket, 'listPayees', minute, 'admitted', 1)).toBe(true);
    expect(sums.size).toBe(10);
    const taken = sums.take(Number.POSITIVE_INFINITY);
    expect(taken.map(({ minute, points }) => [minute, points])).toEqual(
      Array.from({ length: 10 }, (_, quarter) => [quarter * 15 + 14, 15]),
    );
    expect(sums.size).toBe(0);
  });

  test('join the quarters of a day when there are too many, and drop what still does not fit', () => {
    const sums = new PendingSums(10);
    const add = (owner: string, minute: number) =>
      sums.add(bucketOf(owner), 'listPayees', minute, 'admitted', 1);
    for (let minute = 0; minute < 1_440; minute++) expect(add('acct_1', minute)).toBe(true);
    expect(sums.size).toBeLessThanOrEqual(10);
    for (let owner = 2; owner <= 10; owner++) expect(add(`acct_${owner}`, 1_439)).toBe(true);
    expect(add('acct_11', 1_439)).toBe(false);
    const [first, ...others] = sums.take(Number.POSITIVE_INFINITY);
    expect([first?.minute, first?.points, others.length]).toEqual([1_439, 1_440, 9]);
  });

  test('are added to what was joined in their own minute', () => {
    const sums = new PendingSums(3);
    for (const minute of [0, 1, 2, 14])
      expect(sums.add(bucketOf('acct_1'), 'listPayees', minute, 'admitted', 1)).toBe(true);
    expect(sums.size).toBe(1);
    expect(sums.take(Number.POSITIVE_INFINITY)).toMatchObject([{ minute: 14, points: 4, requests: 4 }]);
  });

  test.each(['UTC', 'Asia/Kolkata', 'Asia/Kathmandu'])('that are joined keep their day in %s', (timeZone) => {
    const calendar = calendarOf({ unit: 'day', timeZone, startsOn: 1 });
    const sums = new PendingSums(100);
    const pointsByDay = (all: readonly { readonly minute: number; readonly points: number }[]) => {
      const points = new Map<number, number>();
      for (const one of all) {
        const day = calendar.at(one.minute * 60_000).startMs;
        points.set(day, (points.get(day) ?? 0) + one.points);
      }
      return points;
    };
    const minutes = Array.from({ length: 1_440 }, (_, index) => ({ minute: MINUTE + index, points: 1 }));
    for (const { minute, points } of minutes)
      expect(sums.add(bucketOf('acct_1'), 'listPayees', minute, 'admitted', points)).toBe(true);
    expect(pointsByDay(sums.take(Number.POSITIVE_INFINITY))).toEqual(pointsByDay(minutes));
  });
});
