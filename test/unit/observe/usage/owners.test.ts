import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Owners } from '../../../../src/observe/usage/owners.ts';

it('the 2,500 owners with the last requests are the same objects still, and at most 5,000 are found', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9_000), { minLength: 12_000, maxLength: 12_000 }), (ids) => {
      const owners = new Owners();
      const made = ids.map((id) => owners.renew(`acct_${id}`));
      const last = [...new Set(ids.toReversed())].slice(0, 2_500);
      expect(last.filter((id) => owners.get(`acct_${id}`) !== made[ids.lastIndexOf(id)])).toEqual([]);
      const all = Array.from({ length: 9_001 }, (_, id) => owners.get(`acct_${id}`)?.id);
      expect(all.filter((id) => id !== undefined).length).toBeLessThanOrEqual(5_000);
      expect(all.filter((found, id) => found !== undefined && found !== `acct_${id}`)).toEqual([]);
    }),
    { numRuns: 5 },
  );
});

it('an owner that a sketch adds to is found until the sketch is closed, without what it did', () => {
  const owners = new Owners();
  const owner = owners.renew('heavy');
  const counts = {
    id: 'heavy',
    owner,
    points: 1,
    requests: 1,
    refused: 0,
    error: 0,
    organization: undefined,
  };
  const flood = () => {
    for (let index = 0; index < 10_000; index++) owners.renew(`flood_${index}`);
  };
  owner.counts = counts;
  flood();
  expect(owners.get('heavy')).toBe(owner);
  owner.counts = { ...counts, owner: owners.renew('flood_1') };
  flood();
  expect(owners.get('heavy')).toBeUndefined();
});
