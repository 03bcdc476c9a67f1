import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Refusal } from '../../../src/domain/problems.ts';
import { OperationTable } from '../../../src/stages/match.ts';
import { normalise } from '../../../src/stages/normalise.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { SAFE } from '../../fixtures/hostile/upstream-routers.ts';
import { sendRaw } from '../../fixtures/raw.ts';

const isRefused = (decoded: string, profile = SAFE) =>
  normalise(`/v3/things/${encodeURIComponent(decoded)}`, profile) instanceof Refusal;

/** Every character of Unicode that is not ASCII. */
function* characters(): Generator<string> {
  for (let point = 0x80; point <= 0x10ffff; point++) {
    if (point < 0xd800 || point > 0xdfff) yield String.fromCodePoint(point);
  }
}

/** All of them in blocks of neighbours. */
function* blocks(length: number): Generator<readonly string[]> {
  let block: string[] = [];
  for (const character of characters()) {
    block.push(character);
    if (block.length < length) continue;
    yield block;
    block = [];
  }
  yield block;
}

/** For private use: nothing composes with it, and no mapping changes it. */
const SEPARATOR = '\ue000';

const named = (found: readonly string[]) =>
  found.slice(0, 20).map((character) => `U+${character.codePointAt(0)?.toString(16)}`);

describe('of all of Unicode', () => {
  it('every character that case mapping, case folding or NFKC turns into ASCII is refused', () => {
    const letters = /[a-z]/iu;
    const mappings: readonly ((text: string) => string)[] = [
      (text) => text.toLowerCase(),
      (text) => text.toUpperCase(),
      (text) => text.toLocaleLowerCase('tr'),
      (text) => text.toLocaleUpperCase('tr'),
      (text) => text.toUpperCase().toLowerCase(),
      (text) => text.normalize('NFKC'),
      (text) => text.normalize('NFKC').toLowerCase().normalize('NFKC'),
    ];
    const isDangerous = (text: string) =>
      letters.test(text) || mappings.some((map) => /[\0-\x7f]/.test(map(text)));
    const admitted: string[] = [];
    let dangerous = 0;
    for (const block of blocks(256)) {
      if (!isDangerous(block.join(SEPARATOR))) continue;
      for (const character of block.filter(isDangerous)) {
        dangerous++;
        if (!isRefused(`x${character}`)) admitted.push(character);
      }
    }
    expect(named(admitted)).toEqual([]);
    expect(dangerous).toBeGreaterThan(1600);
  });

  it('every character is refused that another implementation turns into ASCII', () => {
    // Made with Python's unicodedata (Unicode 14): casefold, lower, upper, NFKC, and NFKC of the case-folded NFKC.
    const ranges = readFileSync(new URL('../../fixtures/hostile/ascii-forms.txt', import.meta.url), 'utf8');
    const admitted: string[] = [];
    for (const range of ranges.trim().split(/\s+/)) {
      const [first = '', last = first] = range.split('-');
      for (let point = Number.parseInt(first, 16); point <= Number.parseInt(last, 16); point++) {
        const character = String.fromCodePoint(point);
        if (!isRefused(`x${character}`)) admitted.push(character);
      }
    }
    expect(named(admitted)).toEqual([]);
  });

  it('no character that may be removed hides between ASCII ones', () => {
    const admitted = [...characters()].filter(
      (character) => /\p{Default_Ignorable_Code_Point}/u.test(character) && !isRefused(`bu${character}lk`),
    );
    expect(named(admitted)).toEqual([]);
    expect(isRefused('thI\u0307ngs'), 'Turkish: I with a dot above, decomposed').toBe(true);
  });

  it('letters that no mapping changes are accepted, and far outnumber the refused ones', () => {
    for (const text of [
      'café',
      'cafe\u0301',
      'Ünï',
      'naïve',
      'Ёж',
      '日本',
      'ไทย',
      '☃',
      '❤\ufe0f',
      '👩\u200d💻',
    ]) {
      expect(isRefused(text), text).toBe(false);
    }
    let admitted = 0;
    for (const [first = ''] of blocks(64)) if (!isRefused(`x${first}`)) admitted++;
    expect(admitted).toBeGreaterThan(250_000 / 64);
  });

  it('all of them are accepted if the profile treats them as distinct', () => {
    for (const text of ['bul\u212a', 'ｂulk', 'straße', '½']) {
      expect(isRefused(text, { ...SAFE, asciiForms: 'distinct' }), text).toBe(false);
    }
  });
});

describe('a path with letters other than ASCII', () => {
  const place = { file: 'test', path: '', line: () => undefined };
  const listed = { method: 'GET', kind: 'read', access: 'caller', listed: true, rules: undefined } as const;
  const cafe = { ...listed, path: '/v3/Café', id: 'café', cost: 10, writtenAt: place, costWrittenAt: place };
  const prices = new OperationTable([{ ...cafe, validation: 'none' }], 'charge');

  it.each(['/v3/Caf%C3%A9', '/v3/CAF%C3%89', '/v3/cafe%CC%81', '/v3/ca%C2%ADf%C3%A9'])(
    'has one price: %s',
    (path) => {
      const target = normalise(path, SAFE);
      expect(target).toMatchObject({ path });
      expect(prices.find('GET', path)).toMatchObject({ id: 'café', cost: 10 });
    },
  );
});

/** Escapes that some router reads as the ASCII letter: by folding, by Turkish case mapping, or by NFKC. */
const SPELLINGS: readonly string[] = [
  'bul%E2%84%AA',
  'bul%EF%BD%8B',
  'bul%F0%9D%90%A4',
  'bu%C2%ADlk',
  'bulk%E2%80%8D',
  'b%E1%B5%98lk',
  'b%E1%B5%98l%E2%84%AA',
];

describe('in front of a router that decodes and then folds case', () => {
  const ran: string[] = [];
  let gateway: TestGateway;
  beforeAll(async () => {
    const service = Fastify({ routerOptions: { caseSensitive: false } });
    service.get('/v3/things/bulk', async () => ran.push('bulk'));
    service.get('/v3/reports', async () => ran.push('reports'));
    service.get('/v3/:anything', async () => ran.push('anything'));
    await service.listen({ host: '127.0.0.1', port: 0 });
    const url = `http://127.0.0.1:${(service.server.address() as AddressInfo).port}`;
    const upstream = { url, seen: [], close: () => service.close() };
    gateway = await startGateway({ upstream, limits: PLENTY });
    expect((await fetch(`${url}/v3/things/bul%E2%84%AA`)).status, 'what this upstream makes of it').toBe(200);
    ran.length = 0;
  });
  afterAll(() => gateway.close());

  const get = (path: string) =>
    sendRaw(
      gateway.url,
      `GET ${path} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer lonely\r\nConnection: close\r\n\r\n`,
    );

  it.each(SPELLINGS)('%s is a 400 that is neither charged nor run', async (spelling) => {
    const answer = await get(`/v3/things/${spelling}`);
    expect(answer.statuses).toEqual([400]);
    expect(answer.text).not.toMatch(/^RateLimit/im);
    expect(ran).toEqual([]);
  });

  it('unencoded non-ASCII characters, overlong and invalid UTF-8 are refused too', async () => {
    for (const spelling of [
      'bul\xe2\x84\xaa',
      'bul\xeb',
      'bul%c1%ab',
      'bul%e2%84',
      'bul%ed%a0%80',
      '%f8%88%80%80%ab',
    ]) {
      expect((await get(`/v3/things/${spelling}`)).statuses, spelling).toEqual([400]);
    }
    expect(ran).toEqual([]);
  });

  it('an accented letter is served as the operation that it is priced as', async () => {
    expect((await get('/v3/d%C3%A9ar')).statuses).toEqual([200]);
    expect(ran).toEqual(['anything']);
  });
});
