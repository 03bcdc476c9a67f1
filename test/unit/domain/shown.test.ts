import { expect, it, test } from 'vitest';
import { errorText, shownCount, shownShare } from '../../../src/domain/shown.ts';

it.each([
  [7 / 39, '17.95 %'],
  [0, '0 %'],
  [1, '100 %'],
  [0.00001, '<0.01 %'],
  [0.999999, '99.99 %'],
  [0.001, '0.1 %'],
])('the share %d is shown as %s', (share, text) => expect(shownShare(share)).toBe(text));

test('counts are shown as Intl shows them', () => {
  const shown = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
  for (const count of [0, 7, 999, 999.5, 1_000, 12_345, 999_999.4, 1_000_000, -100, -1_000, 2 ** 53])
    expect(shownCount(count)).toBe(shown.format(count));
});

test('where no address of a name answers, the error of the first is shown', () => {
  const each = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:6379`));
  expect(errorText(new AggregateError(each))).toBe('connect ECONNREFUSED ::1:6379');
  expect(errorText(new Error('other'))).toBe('other');
});
