import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Refusal } from '../../../src/domain/problems.ts';
import { OperationTable } from '../../../src/stages/match.ts';
import { MAX_MARKS, MAX_PATH_LENGTH, normalise } from '../../../src/stages/normalise.ts';
import type { PathProfile } from '../../../src/stages/path/folded-path.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { DECISIONS, PROTOCOLS, sendPlain } from '../../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { SAFE } from '../../fixtures/hostile/upstream-routers.ts';

const PROFILES: readonly PathProfile[] = (['same', 'refuse', 'remove', 'distinct'] as const).flatMap(
  (trailingSlash) =>
    (['refuse', 'distinct'] as const).map((asciiForms) => ({ ...SAFE, trailingSlash, asciiForms })),
);

const place = { file: 'test', path: '', line: () => undefined };
const listed = (path: string) =>
  ({
    method: 'GET',
    path,
    id: path,
    kind: 'read',
    cost: 2,
    access: 'caller',
    listed: true,
    writtenAt: place,
    costWrittenAt: undefined,
    validation: 'none',
    rules: undefined,
  }) as const;
const OPERATIONS = ['/v3/things', '/v3/things/{id}', '/v3/things/{id}:cancel', '/v3/things/bulk', '/a/'].map(
  listed,
);

/** Everything that happens to a path before anybody is asked for a token. */
function handler(profile: PathProfile) {
  const table = new OperationTable(OPERATIONS, 'charge', profile.case, profile.trailingSlash);
  return (method: string, rawTarget: string) => {
    const target = normalise(rawTarget, profile, (folded) => table.servesSlash(method, folded));
    if (!(target instanceof Refusal)) table.find(method, target.path, target.folded);
    return target;
  };
}

/** Marks of several classes, out of order: normalisation sorts them. */
const DISORDER = ['\u0301', '\u0316', '\u0345', '\u05b0', '\u3099', '\u{1d165}'];
/** What does not end a run: it is removed, or becomes a mark, before the run is sorted. */
const INVISIBLE = ['\u034f', '\u200d', '\u00ad', '\ufe0f', '\uff9e', '\u{e0100}'];
const OTHER = ['a', 'é', 'ß', 'ﷺ', '日', '가', '%', ':', '.', '\u00b4', '\ua66f', '\ud7ff'];
const run = (length: number, characters: readonly string[]) =>
  Array.from({ length }, (_, index) => characters[(index * 7) % characters.length]).join('');

describe('before anything is normalised', () => {
  /** What was given to `normalize`. */
  const seen: string[] = [];
  const { normalize } = String.prototype;
  beforeAll(() => {
    vi.spyOn(String.prototype, 'normalize').mockImplementation(function (this: string, form) {
      seen.push(String(this));
      return normalize.call(this, form);
    });
  });
  afterEach(() => void seen.splice(0));
  afterAll(() => vi.restoreAllMocks());

  it('no text of a path has a long run of what normalisation puts in order', () => {
    const unicode = fc.oneof(
      fc.constantFrom(...DISORDER),
      fc.constantFrom(...INVISIBLE),
      fc.constantFrom(...OTHER),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.constantFrom(20, 31, 40, 300).map((length) => run(length, DISORDER)),
      fc.constantFrom(20, 31, 300).map((length) => run(length, [...DISORDER, ...INVISIBLE])),
    );
    const paths = fc
      .array(unicode, { maxLength: 12 })
      .map((parts) => `/${encodeURIComponent(parts.join('').replaceAll(/\p{Surrogate}/gu, ''))}`);
    const handlers = PROFILES.map(handler);
    let served = 0;
    fc.assert(
      fc.property(
        paths,
        fc.constantFrom('GET', 'OPTIONS'),
        fc.constantFrom('', '/'),
        fc.nat(PROFILES.length - 1),
        (path, method, slash, profile) => {
          seen.length = 0;
          if (!(handlers[profile]?.(method, path + slash) instanceof Refusal)) served++;
          // Decomposed: a letter with three marks may carry thirty more.
          const runs = seen.flatMap((text) => normalize.call(text, 'NFKD').match(/\p{M}+/gu) ?? []);
          const longest = Math.max(0, ...runs.map((marks) => [...marks].length));
          expect(longest).toBeLessThanOrEqual(4 * MAX_MARKS);
        },
      ),
      { numRuns: generatedCases(2_000) },
    );
    expect(served).toBeGreaterThan(generatedCases(300));
  });

  it('a path is folded once, whatever its method, slash and profile', () => {
    const path = `/v3/things/${encodeURIComponent('cafe\u0301:x'.repeat(80))}`;
    const amounts = PROFILES.flatMap((profile) =>
      ['GET', 'HEAD', 'OPTIONS', 'DELETE'].flatMap((method) =>
        [path, `${path}/`, `${path}.json`].map((target) => {
          seen.length = 0;
          handler(profile)(method, target);
          return seen.length;
        }),
      ),
    );
    // Each of 80 groups is normalised before and after its letter case is folded.
    expect(new Set(amounts)).toEqual(new Set([160]));
  });
});

/** The least CPU time of handling a target, in µs. */
function leastUs(handle: () => unknown): number {
  const times = Array.from({ length: 6 }, () => {
    const before = process.cpuUsage();
    for (let time = 0; time < 5; time++) handle();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 5;
  });
  return Math.max(0.1, Math.min(...times));
}

const filled = (text: string) => `/${text.repeat(Math.floor((MAX_PATH_LENGTH - 2) / text.length))}`;
const escaped = (text: string) => filled(encodeURIComponent(text));

it('no path of the greatest length costs many times as much as a plain one of that length', () => {
  const hostile = {
    marks: escaped(run(30, DISORDER)),
    'marks between letters': escaped(`a${run(29, DISORDER)}`),
    'invisible marks': escaped(run(30, [...DISORDER, ...INVISIBLE])),
    'accented letters': escaped('é'),
    'letters with and without accents': filled(`a${encodeURIComponent('é')}`),
    'ligatures that decompose': escaped('ﷺ'),
    'needless escapes': filled('%41'),
    'escapes of punctuation': filled('%3a'),
    'escapes of spaces': filled('%20'),
    'suffixes of segments': filled('things.a/').slice(0, -1),
    'dots in one segment': `/v3/things/a${'.'.repeat(8_000)}`,
    'short segments': filled('a/').slice(0, -1),
  };
  const plain = leastUs(() => handler(SAFE)('GET', filled('x')));
  for (const [name, path] of Object.entries(hostile)) {
    for (const profile of [SAFE, { ...SAFE, trailingSlash: 'refuse', asciiForms: 'distinct' } as const]) {
      const handle = handler(profile);
      for (const [method, target] of [
        ['GET', path],
        ['OPTIONS', `${path}/`],
      ] as const) {
        const ratio = leastUs(() => handle(method, target)) / plain;
        expect(ratio, `${method} of ${name} with ${JSON.stringify(profile)}`).toBeLessThan(300);
      }
    }
  }
});

describe('real text', () => {
  it.each([
    ['Hebrew with vowels and accents', 'בְּרֵאשִׁ֖ית'],
    ['Thai', 'ที่นี่'],
    ['Hindi', 'क्षत्रियों'],
    ['Tibetan', 'བསྒྲུབས'],
    ['Vietnamese, decomposed', 'Việt'.normalize('NFD')],
    ['a flag', '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'],
    ['a family', '👨\u200d👩\u200d👧\u200d👦'],
    ['thirty marks', `a${run(MAX_MARKS, DISORDER)}`],
  ])('in a path is served: %s', (_, text) => {
    expect(normalise(`/v3/things/x${encodeURIComponent(text)}`, SAFE)).not.toBeInstanceOf(Refusal);
  });
});

describe('over the wire', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ limits: PLENTY, settings: { decisions: DECISIONS } });
  });
  afterAll(() => gateway.close());

  const MANY = `/a${encodeURIComponent(run(MAX_MARKS + 1, DISORDER))}/`;
  const LONG = `/${'x'.repeat(MAX_PATH_LENGTH)}`;
  const TEXTS = [
    [MANY, 'The path has more than 30 combining marks or invisible characters in a row.'],
    [LONG, 'The path has more than 8192 characters.'],
  ] as const;

  it.each(['GET', 'OPTIONS', 'POST'])('such a path is a 400 without a token: %s', async (method) => {
    for (const [path, detail] of TEXTS) {
      const { status, body } = await sendPlain(gateway.url, method, path);
      expect([status, JSON.parse(body)]).toMatchObject([400, { code: 'BadRequest', detail }]);
    }
  });

  it.each(Object.keys(PROTOCOLS))('such a path is a 400 for a proxy: %s', async (protocol) => {
    for (const [path, detail] of TEXTS) {
      const answer = await PROTOCOLS[protocol]?.(gateway.decisionsUrl, 'OPTIONS', path);
      // nginx understands no other refusal than a 403.
      expect(answer?.status).toBe(protocol === 'auth-request' ? 403 : 400);
      expect(answer?.body).toContain(detail);
    }
  });

  it('such a path is a 400 for a program, in each of its questions', async () => {
    const decisions = Array.from({ length: 60 }, () => ({ method: 'GET', path: MANY, token: 'service' }));
    const response = await fetch(`${gateway.decisionsUrl}/decide`, {
      method: 'POST',
      body: JSON.stringify({ decisions }),
    });
    const answer = (await response.json()) as { decisions: { status: number }[] };
    expect(new Set(answer.decisions.map(({ status }) => status))).toEqual(new Set([400]));
  });

  it('a path of the greatest length is served, and its query does not count', async () => {
    const path = LONG.slice(0, MAX_PATH_LENGTH);
    const { status } = await sendPlain(gateway.url, 'GET', `${path}?${'q'.repeat(4_000)}`, {
      Authorization: 'Bearer service',
    });
    expect([status, gateway.upstream.seen.at(-1)?.url.length]).toEqual([200, MAX_PATH_LENGTH + 4_001]);
  });
});
