import { pino } from 'pino';
import { expect, test } from 'vitest';
import { asChange } from '../../../../src/admin/history/change.ts';
import { matching } from '../../../../src/facts/message-bounds.ts';
import {
  Changes,
  type Difference,
  type KeptChange,
  noticedChange,
} from '../../../../src/observe/log/noticed-changes.ts';

test.each<[Difference, string]>([
  [
    { change: 'changed', id: 'acct_7', bucket: 'account-read', from: { limit: 500 }, to: { limit: 5_000 } },
    'account-read of acct_7 500 → 5000',
  ],
  [
    {
      change: 'added',
      id: 'acct_7',
      bucket: 'account-read',
      from: { limit: 500 },
      to: { limit: 800, until: '2026-11-28T05:37:15.811Z' },
    },
    'account-read of acct_7 500 → 800 until 2026-11-28 05:37:15 UTC',
  ],
  [
    { change: 'changed', bucket: 'account-read', from: { limit: 500 }, to: { limit: 5_000 } },
    'account-read 500 → 5000',
  ],
  [
    { change: 'changed', id: 'org_1', from: { periodStartsOn: 31 }, to: { periodStartsOn: 3 } },
    'org_1 periodStartsOn 31 → periodStartsOn 3',
  ],
  [{ change: 'added', id: 'org_1', to: { plan: 'pro' } }, 'org_1 added (plan pro)'],
  [{ change: 'removed', what: 'token', id: 'sha256:817744ff' }, 'token sha256:817744ff removed'],
  [
    { change: 'changed', operation: 'listThings', from: { cost: 1 }, to: { cost: 5 } },
    'listThings 1 point → 5 points',
  ],
])('a change of %j is listed as %s', (difference, text) => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  changes.info({ difference: [difference] }, 'limits.changed');
  expect(changes.latest[0]?.text).toBe(text);
});

test.each<[string, Partial<Difference>]>([
  ['with half of a surrogate pair at its cut', { operation: `${'a'.repeat(298)}😀 and more` }],
  ['with a direction mark and a control character', { operation: 'list\u202e\u0007things' }],
  ['of thousands of characters', { operation: '😀'.repeat(3_000) }],
  ['with half of a surrogate pair in a value', { id: 'org_1', to: { plan: '\ud83d' } }],
])('no text %s is published that others refuse', (_, named) => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  const kept: KeptChange[] = [];
  changes.onNoticed = (change) => void kept.push(change);
  changes.info({ difference: [{ change: 'added', ...named }] }, 'operations.changed');
  expect(matching(noticedChange)(changes.latest[0])).toEqual(changes.latest[0]);
  expect(asChange(kept[0])).toEqual(kept[0]);
});
