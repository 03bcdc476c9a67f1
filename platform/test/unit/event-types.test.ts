import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { eventTypes } from '../../src/events/event-types.ts';
import { isSubscribed } from '../../src/events/subscribed.ts';

/** Contract section 6.3, row by row, as `Resource: Event, Event…; scopes`. */
const CONTRACT = readFileSync(new URL('./contract-catalog.txt', import.meta.url), 'utf8');

test('the published types and their scopes are exactly as in the contract', () => {
  const wanted = CONTRACT.trim()
    .split('\n')
    .flatMap((row) => {
      const [resource = '', events = '', scopes = ''] = row.split('|').map((cell) => cell.trim());
      return events.split(', ').map((event) => `${resource}.${event} ${scopes}`);
    });
  const published = eventTypes
    .filter((type) => type.contractStatus === 'Published')
    .map((type) => `${type.type} ${type.allowedRoutingSubjectTypes.join(', ')}`);
  expect(wanted.length).toBe(111);
  expect(published.sort()).toEqual(wanted.sort());
});

test('what the contract marks as not published is reserved', () => {
  const reserved = eventTypes.filter((type) => !type.availableForSubscription).map(({ type }) => type);
  for (const name of ['Payee.Created', 'Payee.Deactivated', 'Payable.DepositConfirmed']) {
    expect(reserved).toContain(name);
  }
  expect(reserved.some((name) => name.startsWith('Payout.'))).toBe(true);
});

test('a wildcard includes future types; an exact entry includes only itself', () => {
  expect(isSubscribed(['Invoice.*'], 'Invoice.Shredded')).toBe(true);
  expect(isSubscribed(['*'], 'Comet.Sighted')).toBe(true);
  expect(isSubscribed(['Invoice.*'], 'InvoicePayment.Failed')).toBe(false);
  expect(isSubscribed(['Invoice.Paid'], 'Invoice.PaidLate')).toBe(false);
  expect(isSubscribed([], 'Invoice.Paid')).toBe(false);
});
