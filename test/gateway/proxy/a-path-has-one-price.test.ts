import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../../src/domain/problems.ts';
import { OperationTable } from '../../../src/stages/match.ts';
import { normalise } from '../../../src/stages/normalise.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { COSTS, UPSTREAMS } from '../../fixtures/hostile/upstream-routers.ts';

const WRITTEN_AT = { file: 'test', path: '', line: () => undefined };
const OPERATIONS = Object.entries(COSTS).map(([path, cost]) => ({
  method: 'GET',
  path,
  id: path,
  kind: 'read' as const,
  cost,
  access: 'caller' as const,
  listed: true as const,
  writtenAt: WRITTEN_AT,
  costWrittenAt: undefined,
  validation: 'none' as const,
  rules: undefined,
}));

/** Another way in which a hostile client can spell a path. */
type Spelling = (path: string, at: number) => string;

const insert =
  (text: string): Spelling =>
  (path, at) =>
    path.slice(0, at) + text + path.slice(at);
const change =
  (spell: (character: string) => string): Spelling =>
  (path, at) =>
    path.slice(0, at) + spell(path[at] ?? '') + path.slice(at + 1);
const hex = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`;

/** The letter or digit in its full width, which NFKC makes the plain one. */
const wide = (character: string) =>
  /[\w.]/.test(character)
    ? encodeURIComponent(String.fromCharCode(character.charCodeAt(0) + 0xfee0))
    : character;
const LOOKALIKES: Readonly<Record<string, string>> = { k: '\u212a', s: '\u017f', i: '\u0131', I: '\u0130' };

const SPELLINGS: readonly Spelling[] = [
  change(wide),
  change((character) => encodeURIComponent(LOOKALIKES[character] ?? character)),
  change((character) => (character === '' ? '' : hex(character))),
  change((character) => (character === '' ? '' : hex(character).toUpperCase())),
  change((character) => (character === '' ? '' : `%25${hex(character).slice(1)}`)),
  change((character) => character.toUpperCase()),
  change((character) => (character === '/' ? '\\' : character)),
  ...[
    '/',
    '//',
    '/.',
    '/./',
    '/..',
    '/../',
    'x/../',
    '/x/..',
    '%2e',
    '%2E%2E',
    '/%2e%2e/',
    '/.%2e/',
    '%2f',
    '%2F',
    '%5c',
    '\\',
    ';',
    ';x=1',
    ';/',
    '/;/',
    '%3b',
    '%00',
    '\0',
    '%20',
    ' ',
    '+',
    '%09',
    '#',
    '#x',
    '%23',
    '?',
    '?x=1',
    '%3f',
    '%c0%ae',
    '%c0%af',
    '%e0%80%af',
    '%ff',
    '%',
    '%zz',
    '%u002f',
    '.',
    '..',
    '.json',
    '.json.en',
    '.json/',
    '/index.php',
    '.php',
    '*',
    ':',
    '@',
    '~',
    'é',
    '\u2215',
    '%EF%BC%8F',
    '%C2%AD',
    '%E2%80%8D',
    '|',
    '"',
    '<',
    '[',
    '{',
  ].map(insert),
];

const targets = fc
  .tuple(
    fc.constantFrom(...Object.keys(COSTS)),
    fc.constantFrom('', '', '', '', '', '', 'http://weir', '//weir', '/v3', '/..'),
    fc.array(fc.tuple(fc.nat(SPELLINGS.length - 1), fc.nat(60)), { maxLength: 4 }),
  )
  .map(([path, before, spellings]) => {
    const plain = before + path.replaceAll(/\{\w+\}/g, 'x1');
    return spellings.reduce(
      (spelt, [spelling, at]) => SPELLINGS[spelling]?.(spelt, at % (spelt.length + 1)) ?? spelt,
      plain,
    );
  });

describe.each(UPSTREAMS)('in front of %s', (_, upstream, profile) => {
  const prices = new OperationTable(OPERATIONS, 'charge', profile.case, profile.trailingSlash);

  it('no spelling of a path is charged less than the operation that it runs', () => {
    let forwarded = 0;
    fc.assert(
      fc.property(targets, (rawTarget) => {
        const target = normalise(rawTarget, profile, (folded) => prices.servesSlash('GET', folded));
        if (target instanceof Refusal) return;
        const operation = prices.find('GET', target.path, target.folded);
        if (operation instanceof Refusal) return;
        forwarded++;
        const ran = upstream(target.path + target.search);
        const charged = operation === 'free' ? 0 : operation.cost;
        expect(charged, `${target.path} runs ${ran}`).toBeGreaterThanOrEqual(COSTS[ran ?? ''] ?? 0);
      }),
      { numRuns: generatedCases(4000) },
    );
    // A gateway that refuses everything would pass as well.
    expect(forwarded).toBeGreaterThan(generatedCases(400));
  });
});

const SAFE = UPSTREAMS[0]?.[2];

describe('a target', () => {
  it.each([
    ['/v3/%74hings', '/v3/things'],
    ['/v3/things/%7Eme%2d1', '/v3/things/~me-1'],
    ['/v3/things/a%c3%a9', '/v3/things/a%C3%A9'],
    ['/v3/things/a b'.replace(' ', '%20'), '/v3/things/a%20b'],
    ['/', '/'],
  ])('%s has the canonical path %s', (rawTarget, path) => {
    expect(SAFE && normalise(`${rawTarget}?q=%2e%2e//`, SAFE)).toMatchObject({ path, search: '?q=%2e%2e//' });
  });

  it.each(['/v3/things#x', '/v3/things?x#y'])('%s is refused for its fragment', (rawTarget) => {
    const detail = 'The request target must not have a fragment.';
    expect(SAFE && normalise(rawTarget, SAFE)).toMatchObject({ detail });
  });

  it.each([
    '/v3/./things',
    '/v3/../things',
    '/v3/x/..',
    '/v3/%2e/things',
    '/v3/%2E%2e/things',
    '/v3/.%2e',
    '/v3/things/.',
    '/v3\\things',
    '/v3%5cthings',
    '/v3/a%2fb',
    '/v3/a%2Fb',
    '/v3/%252e%252e',
    '/v3/a%00',
    '/v3/a%0d%0a',
    '/v3/a%7f',
    '/v3/things#x',
    '/v3/things?x#y',
    '/v3/a%23b',
    '/v3/a%3fb',
    '/v3/a;b=c',
    '/v3/a%3bb',
    '/v3//things',
    '//v3/things',
    '/v3/%c0%ae%c0%ae/x',
    '/v3/%ff',
    '/v3/%',
    '/v3/%g1',
    '/v3/%u0041',
    '/v3/[x]',
    '/v3/{x}',
    '/v3/a|b',
    '/v3/"a"',
    '/v3/<a>',
    '/v3/a^b',
    '/v3/a`b',
    '/v3/é',
    'http://weir/v3/things',
    '*',
    '',
    'v3/things',
    '?x',
  ])('%s is refused with 400', (rawTarget) => {
    expect(SAFE && normalise(rawTarget, SAFE)).toMatchObject({ code: 'BadRequest', status: 400 });
  });
});
