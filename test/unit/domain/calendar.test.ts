import { Temporal } from '@js-temporal/polyfill';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { calendarOf, PERIOD_UNITS, type PeriodRule, WEEKDAYS } from '../../../src/domain/limits/calendar.ts';
import { isTimeZone, timeZones } from '../../../src/domain/limits/time-zone.ts';
import { generatedCases, generatedCombinations } from '../../fixtures/generated-cases.ts';

const FIRST_MS = Date.UTC(1995, 0);
const LAST_MS = Date.UTC(2035, 0);

/** Zones whose clocks do what others never do, and are as likely as all others together. */
const UNUSUAL = [
  'UTC',
  'America/Sao_Paulo', // was set forward at midnight
  'America/Havana', // is set back at one o'clock, to midnight
  'Asia/Beirut',
  'Africa/Cairo',
  'Asia/Gaza',
  'Pacific/Apia', // had no 30 December 2011
  'Pacific/Kwajalein',
  'Australia/Lord_Howe', // is set by half an hour
  'Asia/Kathmandu', // 5:45
  'America/St_Johns', // was set back a minute after midnight
  'Africa/Casablanca',
  'Asia/Pyongyang',
  'America/Caracas',
  'Antarctica/Troll', // is set by two hours
  'Europe/Berlin',
];

const rule: fc.Arbitrary<PeriodRule> = fc
  .record({
    unit: fc.constantFrom(...PERIOD_UNITS),
    timeZone: fc.oneof(fc.constantFrom(...UNUSUAL), fc.constantFrom(...timeZones())),
    startsOn: fc.integer({ min: 1, max: 31 }),
  })
  .map((one) => (one.unit === 'week' ? { ...one, startsOn: ((one.startsOn - 1) % 7) + 1 } : one));

test('every period of 40 years, in all zones, is the one that Temporal finds', () => {
  fc.assert(
    fc.property(rule, fc.integer({ min: FIRST_MS, max: LAST_MS }), (one, unixMs) => {
      const { startMs, endMs, nextEndMs } = calendarOf(one).at(unixMs);
      const [expectedStart, expectedEnd, expectedNext] = byTemporal(one, unixMs);
      expect({ startMs, endMs, nextEndMs }).toEqual({
        startMs: expectedStart,
        endMs: expectedEnd,
        nextEndMs: expectedNext,
      });
    }),
    { numRuns: generatedCases(1_500) },
  );
});

test('periods follow each other without a gap, for 40 years of each unusual zone', () => {
  for (const timeZone of generatedCombinations(UNUSUAL)) {
    const calendar = calendarOf({ unit: 'month', timeZone, startsOn: 31 });
    let span = calendar.at(FIRST_MS);
    while (span.startMs < LAST_MS) {
      const next = calendar.at(span.endMs);
      expect([next.startMs, next.endMs]).toEqual([span.endMs, span.nextEndMs]);
      expect(calendar.at(span.endMs - 1).startMs).toBe(span.startMs);
      span = next;
    }
  }
});

test('the same period is the same object, and the same rule the same calendar', () => {
  const one = { unit: 'month', timeZone: 'Europe/Berlin', startsOn: 15 } as const;
  const calendar = calendarOf(one);
  const span = calendar.at(Date.UTC(2026, 10, 20));
  expect(calendar.at(Date.UTC(2026, 11, 14))).toBe(span);
  expect(calendarOf({ ...one })).toBe(calendar);
});

test.each([
  [
    'a month that begins on the 31st',
    'month',
    'UTC',
    31,
    '2026-02-27T00:00Z',
    '2026-01-31T00:00Z',
    '2026-02-28T00:00Z',
  ],
  [
    'the same in a leap year',
    'month',
    'UTC',
    30,
    '2028-02-28T00:00Z',
    '2028-01-30T00:00Z',
    '2028-02-29T00:00Z',
  ],
  [
    'a day of 23 hours',
    'day',
    'Europe/Berlin',
    1,
    '2026-03-29T12:00Z',
    '2026-03-28T23:00Z',
    '2026-03-29T22:00Z',
  ],
  [
    'a day of 25 hours',
    'day',
    'Europe/Berlin',
    1,
    '2026-10-25T12:00Z',
    '2026-10-24T22:00Z',
    '2026-10-25T23:00Z',
  ],
  [
    'a day without a midnight',
    'day',
    'America/Sao_Paulo',
    1,
    '2018-11-04T12:00Z',
    '2018-11-04T03:00Z',
    '2018-11-05T02:00Z',
  ],
  [
    'a day with two midnights',
    'day',
    'America/Havana',
    1,
    '2026-11-01T12:00Z',
    '2026-11-01T04:00Z',
    '2026-11-02T05:00Z',
  ],
  [
    'the day before one that was left out',
    'day',
    'Pacific/Apia',
    1,
    '2011-12-30T09:59Z',
    '2011-12-29T10:00Z',
    '2011-12-30T10:00Z',
  ],
  [
    'a week that begins on a Thursday',
    'week',
    'UTC',
    4,
    '2026-11-25T00:00Z',
    '2026-11-19T00:00Z',
    '2026-11-26T00:00Z',
  ],
  ['a year', 'year', 'Asia/Tokyo', 1, '2026-12-31T16:00Z', '2026-12-31T15:00Z', '2027-12-31T15:00Z'],
  [
    'an hour of half a zone',
    'hour',
    'Asia/Kolkata',
    1,
    '2026-11-25T10:15Z',
    '2026-11-25T09:30Z',
    '2026-11-25T10:30Z',
  ],
] as const)('%s begins and ends when its calendar says so', (_, unit, timeZone, startsOn, at, start, end) => {
  const span = calendarOf({ unit, timeZone, startsOn }).at(Date.parse(at));
  expect([span.startMs, span.endMs].map((ms) => new Date(ms).toISOString())).toEqual(
    [start, end].map((text) => new Date(text).toISOString()),
  );
});

test('a zone that the runtime does not know is none', () => {
  expect([isTimeZone('Europe/Berlin'), isTimeZone('Europe/Bonn'), isTimeZone('')]).toEqual([
    true,
    false,
    false,
  ]);
  expect(WEEKDAYS).toHaveLength(7);
});

test('a zone whose days differ in PostgreSQL is none', () => {
  const names = ['CET', 'MET', 'PST', 'BST', 'IST', '+02:00', '-05', '+0530', 'GMT+2', 'UTC-1'];
  expect(names.filter(isTimeZone)).toEqual([]);
  const equal = ['UTC', 'gmt', 'europe/berlin', 'Etc/GMT+2', 'America/Argentina/Buenos_Aires'];
  expect(equal.filter(isTimeZone)).toEqual(equal);
});

/** The start, the end and the end of the next period, calculated by the reference implementation of ECMAScript's dates. */
function byTemporal({ unit, timeZone, startsOn }: PeriodRule, unixMs: number): number[] {
  const first = Temporal.Instant.fromEpochMilliseconds(unixMs).toZonedDateTimeISO(timeZone).toPlainDate();
  const starts: number[] = [];
  for (const date of datesAround(first, unit, startsOn)) {
    const startMs = date.toZonedDateTime({ timeZone }).startOfDay().epochMilliseconds;
    if (startMs !== starts.at(-1)) starts.push(startMs);
  }
  if (unit !== 'hour') return spanIn(starts, unixMs);
  return spanIn(
    starts.slice(0, -1).flatMap((startMs, index) => hoursBetween(startMs, starts[index + 1] ?? 0)),
    unixMs,
  );
}

function hoursBetween(startMs: number, endMs: number): number[] {
  const hours: number[] = [];
  for (let ms = startMs; ms < endMs; ms += 3_600_000) hours.push(ms);
  return hours;
}

function spanIn(starts: readonly number[], unixMs: number): number[] {
  const present = starts.findLastIndex((ms) => ms <= unixMs);
  return starts.slice(present, present + 3);
}

/** The first days of periods from well before to well after this day. */
function datesAround(
  day: Temporal.PlainDate,
  unit: PeriodRule['unit'],
  startsOn: number,
): Temporal.PlainDate[] {
  const steps = [-2, -1, 0, 1, 2, 3, 4];
  switch (unit) {
    case 'week': {
      const first = day.subtract({ days: (day.dayOfWeek - startsOn + 7) % 7 });
      return steps.map((weeks) => first.add({ weeks }));
    }
    case 'month':
      // Temporal keeps to the last day of a month that is shorter.
      return steps.map((months) => day.with({ day: 1 }).add({ months }).with({ day: startsOn }));
    case 'year':
      return steps.map((years) => day.with({ month: 1, day: 1 }).add({ years }));
    default:
      return steps.map((days) => day.add({ days }));
  }
}
