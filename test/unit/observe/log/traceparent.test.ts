import { describe, expect, it } from 'vitest';
import { RandomTexts } from '../../../../src/observe/log/traceparent.ts';

/** More than are made at once. */
const COUNT = 4_000;

describe('random texts', () => {
  it('have their form, and are never the same twice', () => {
    const ids = new RandomTexts('xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx');
    const made = Array.from({ length: COUNT }, () => ids.next());
    expect(new Set(made).size).toBe(COUNT);
    for (const id of made)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('have every digit at every place', () => {
    const texts = new RandomTexts('xyx');
    const made = Array.from({ length: COUNT }, () => texts.next());
    const digitsAt = (place: number) => new Set(made.map((text) => text[place]));
    expect([0, 1, 2].map((place) => digitsAt(place).size)).toEqual([16, 4, 16]);
  });
});
