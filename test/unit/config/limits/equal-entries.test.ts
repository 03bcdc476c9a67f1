import { describe, expect, test } from 'vitest';
import { withoutRepeats } from '../../../../src/config/files/limits/equal-entries.ts';
import { parseLimits, parseOverrides } from '../../../../src/config/files/limits/parse-limits.ts';
import { ConfigError } from '../../../../src/config/problem.ts';
import { random } from '../../../fixtures/random.ts';

const NAMED = { rows: [], plans: ['free', 'pro'] };

/** An end of the document is no line that can be left out, so such a text is parsed as it is. */
const WHOLE = '\n...\n';

function resultOf(parse: () => object): unknown {
  try {
    return Object.entries(parse()).map(([name, value]) => [name, value instanceof Map ? [...value] : value]);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

/** Both ways of reading a text, and whether it was shortened. */
function bothWays(text: string) {
  const overrides = (given: string) => resultOf(() => parseOverrides(given, 'o.yaml', NAMED));
  const limits = (given: string) => resultOf(() => parseLimits(given, 'l.yaml'));
  expect(withoutRepeats(text + WHOLE)).toBeUndefined();
  expect(overrides(text), text).toEqual(overrides(text + WHOLE));
  expect(limits(text), text).toEqual(limits(text + WHOLE));
  return withoutRepeats(text) !== undefined;
}

const HEADS = [
  'accounts:',
  'organizations:',
  'principals:',
  'addresses:',
  'accounts: # by sales',
  'accounts: {}',
];
const IDS = [
  'acct_1',
  'acct_2',
  'a.b',
  'a-b',
  'org',
  '0f8fad5b-d9cb-469f-a165-70867728950e',
  'null',
  'True',
  '12',
  '012',
  '1e3',
  '"quoted id"',
  "'x'",
  '203.0.113.7',
  '&anchor x',
  '<<',
  'é',
  '__proto__',
  'constructor',
  'a b',
  '-x',
  '?',
  '- a',
];
const VALUES = [
  '{ plan: pro }',
  '{ plan: pro }  ',
  '{ plan: pro } # paid',
  '{ account-read: 5, account-write: 6 }',
  '{account-read: 5}',
  '{ account-read: { limit: 9, shadow: true, until: "2030-01-31" } }',
  '{ until: 2030-01-31, account-read: 7 }',
  '{ }',
  '{ plan: none such }',
  '{ account-read: many }',
  '{ account-read: 5, account-read: 6 }',
  '{ plan: pro',
  '{ plan: "pro }',
  '{ plan: [ }',
  '{ plan: *x }',
  'none',
  '5',
  '',
  '|',
  '>-',
  '"a',
  '~',
  '[1, 2]',
  'x: y',
  '{ organization-read: none }',
];
const BODIES = [
  'plan: pro',
  'account-read: 5',
  'account-write: 250 # more',
  'organization-read: none',
  'until: "2030-01-31"',
  'account-read: { limit: 3 }',
  'account-read:',
  'plan: free',
  '# nothing',
  '',
  '- a',
  'account-read: "5"',
  '\tplan: pro',
];

const BETWEEN = ['', '  # a comment', '# ä', '\u0007', '   ', '---', '...', '%YAML 1.2'];

/** Texts of sections with overrides. Every now and then, one of their parts is unusual or wrong. */
class Texts {
  readonly #below: (below: number) => number;
  readonly #oddity: number;

  /** @param oddity one of so many parts is odd */
  constructor(seed: number, oddity: number) {
    this.#below = random(seed);
    this.#oddity = oddity;
  }

  next(): string {
    const sections = Array.from({ length: 1 + this.#below(3) }, () => this.#section());
    return sections.flat().join(this.#isOdd(6) ? '\r\n' : '\n');
  }

  #section(): string[] {
    const entries = Array.from({ length: this.#below(7) }, (_, index) => this.#entry(index));
    return [this.#one(HEADS, 3), ...entries.flat()];
  }

  #entry(index: number): string[] {
    const head = `${this.#indent(2)}${this.#one(IDS, 6)}${this.#isOdd(3) ? '' : `_${index}`}:`;
    const before = this.#isOdd(1) ? [this.#one(BETWEEN, 3)] : [];
    if (this.#below(2) === 0) return [...before, `${head} ${this.#one(VALUES, 8)}`];
    const body = Array.from(
      { length: 1 + this.#below(2) },
      () => `${this.#indent(4)}${this.#one(BODIES, 3)}`,
    );
    return [...before, head, ...body];
  }

  #indent(usual: number): string {
    return ' '.repeat(this.#isOdd(2) ? this.#below(6) : usual);
  }

  /** One of the first, which are the usual ones, or of all. */
  #one(list: readonly string[], usual: number): string {
    return list[this.#below(this.#isOdd(1) ? list.length : usual)] ?? '';
  }

  #isOdd(seldom: number): boolean {
    return this.#below(this.#oddity * seldom) === 0;
  }
}

describe('a text whose equal entries are parsed once', () => {
  test.each([15, 60])('means what the whole text means, with one of %i parts odd', (oddity) => {
    const texts = new Texts(oddity, oddity);
    const shortened = Array.from({ length: 250 }, () => bothWays(texts.next())).filter(Boolean);
    expect(shortened.length).toBeGreaterThan(25);
  });

  test.each([
    ['an id twice', 'accounts:\n  a: { plan: pro }\n  a: { plan: pro }'],
    ['a section twice', 'accounts:\n  a: { plan: pro }\n  b: { plan: pro }\naccounts:\n  c: { plan: pro }'],
    [
      'a text over several lines',
      'accounts:\n  a: { plan: pro }\n  b: { plan: pro }\n  c: { plan: "pro\n  d: }" }',
    ],
    ['an anchor', 'accounts:\n  a: &one { plan: pro }\n  b: { plan: pro }\n  c: { plan: pro }'],
    ['nothing that repeats', 'accounts:\n  a: { plan: pro }\n  b: { plan: free }'],
  ])('is left as it is with %s', (_, text) => {
    expect(bothWays(text)).toBe(false);
  });

  test('keeps the order of the ids, whatever was parsed', () => {
    const text = 'accounts:\n  c: { plan: pro }\n  a: { plan: free }\n  # the rest\n  b: { plan: pro }\n';
    expect([...parseOverrides(text, 'o.yaml', NAMED).accounts]).toEqual([
      ['c', { limits: {}, plan: { name: 'pro' } }],
      ['a', { limits: {}, plan: { name: 'free' } }],
      ['b', { limits: {}, plan: { name: 'pro' } }],
    ]);
    expect(withoutRepeats(text)?.text).toBe('accounts:\n  c: { plan: pro }\n  a: { plan: free }');
  });

  test('is found in a limits file with rows and plans', () => {
    const accounts = Array.from({ length: 9 }, (_, index) => `  acct_${index}: { plan: pro }`).join('\n');
    const text = `windowSeconds: 1 # short
defaults: { account-read: 500 }
limits:
  account-minute: { per: account, points: 10000, window: 1m }
  search: { per: account, requests: 25, window: 1s, operations: [searchPayees, "POST /v3/search/**"], tags: [search] }
plans:
  pro:
    account-read: 2000
accounts:
${accounts}
`;
    expect(bothWays(text)).toBe(true);
    expect(parseLimits(text, 'l.yaml').accounts.size).toBe(9);
  });
});
