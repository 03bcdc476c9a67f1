import { expect, it } from 'vitest';
import { shownShare } from '../../../src/domain/shown.ts';

it.each([
  [7 / 39, '17.95 %'],
  [0, '0 %'],
  [1, '100 %'],
  [0.00001, '<0.01 %'],
  [0.999999, '99.99 %'],
  [0.001, '0.1 %'],
])('the share %d is shown as %s', (share, text) => expect(shownShare(share)).toBe(text));
