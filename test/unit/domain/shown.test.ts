import { expect, it, test } from 'vitest';
import { errorText, shownShare } from '../../../src/domain/shown.ts';

it.each([
  [7 / 39, '17.95 %'],
  [0, '0 %'],
  [1, '100 %'],
  [0.00001, '<0.01 %'],
  [0.999999, '99.99 %'],
  [0.001, '0.1 %'],
])('the share %d is shown as %s', (share, text) => expect(shownShare(share)).toBe(text));

test('where no address of a name answers, the error of the first is shown', () => {
  const each = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:6379`));
  expect(errorText(new AggregateError(each))).toBe('connect ECONNREFUSED ::1:6379');
  expect(errorText(new Error('other'))).toBe('other');
});
