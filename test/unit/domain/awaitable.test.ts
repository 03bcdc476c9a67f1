import { describe, expect, it } from 'vitest';
import { andThen, Later } from '../../../src/domain/awaitable.ts';

describe('a value that comes later', () => {
  it('is passed on at once, through every step', () => {
    const later = new Later<number>();
    const seen: number[] = [];
    const doubled = andThen(later, (value) => 2 * value);
    andThen(doubled, (value) => seen.push(value));
    later.resolve(21);
    expect(seen).toEqual([42]);
  });

  it('can be awaited, before and after it came', async () => {
    const later = new Later<string>();
    setImmediate(() => later.resolve('here'));
    expect(await later).toBe('here');
    const early = new Later<string>();
    early.resolve('early');
    expect(await early).toBe('early');
  });

  it('goes through steps that are promises, or come later themselves', async () => {
    const [first, second] = [new Later<number>(), new Later<number>()];
    const sum = first.then(async (value) => value + 1).then((value) => second.then((more) => value + more));
    first.resolve(1);
    second.resolve(40);
    expect(await sum).toBe(42);
  });

  it('passes an error by the steps without a handler, and to no other request', async () => {
    const failing = new Later<number>();
    const steps: string[] = [];
    const recovered = failing
      .then(() => {
        throw new Error('a step failed');
      })
      .then(() => steps.push('never'))
      .then(undefined, (error) => `${error}`);
    failing.resolve(1);
    expect(await recovered).toBe('Error: a step failed');
    expect(steps).toEqual([]);
  });

  it('that is rejected rejects the function that awaits it', async () => {
    const later = new Later<number>();
    later.reject(new Error('gone'));
    await expect(later).rejects.toThrow('gone');
  });
});
