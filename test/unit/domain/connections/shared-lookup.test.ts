import type { LookupAddress } from 'node:dns';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SharedLookup } from '../../../../src/domain/connections/shared-lookup.ts';

const OLD: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
const NEW: LookupAddress[] = [
  { address: '2001:db8::1', family: 6 },
  { address: '192.0.2.2', family: 4 },
];
/** More than a connection waits, and more than an answer is kept. */
const [SILENCE_MS, LONG_MS] = [501, 600_001];

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;
let asked: Answer[];
let nowMs: number;
let shared: SharedLookup;
beforeEach(() => {
  vi.useFakeTimers();
  [asked, nowMs] = [[], 0];
  shared = new SharedLookup(
    (_name, _options, answer) => asked.push(answer),
    () => nowMs,
  );
});
afterEach(() => vi.useRealTimers());

/** What connections to a name get, in order. */
function connect(seen: unknown[], all = true): void {
  shared.lookup('api.test', { all }, (error, addresses) => seen.push(error?.code ?? addresses));
}

function failure(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

/** A name that has an answer already. */
function known(): void {
  connect([]);
  asked.shift()?.(null, OLD);
}

test('connections to a name share one lookup, and the next one asks again', () => {
  const seen: unknown[] = [];
  connect(seen);
  connect(seen, false);
  expect(asked).toHaveLength(1);
  asked[0]?.(null, OLD);
  expect(seen).toEqual([OLD, '192.0.2.1']);
  connect(seen);
  asked[1]?.(null, NEW);
  expect(seen.at(-1)).toEqual(NEW);
});

test('while DNS is silent, connections get the last answer after half a second, later ones at once', async () => {
  known();
  const seen: unknown[] = [];
  connect(seen);
  expect(seen).toEqual([]);
  vi.advanceTimersByTime(SILENCE_MS);
  expect(seen).toEqual([OLD]);
  connect(seen);
  await new Promise(process.nextTick);
  expect(seen).toEqual([OLD, OLD]);
  expect(asked).toHaveLength(1);
  asked[0]?.(null, NEW);
  connect(seen);
  asked[1]?.(null, NEW);
  expect(seen).toEqual([OLD, OLD, NEW]);
});

test('without an earlier answer, connections wait for DNS, with one lookup however many they are', () => {
  const seen: unknown[] = [];
  for (let index = 0; index < 3; index++) {
    connect(seen);
    vi.advanceTimersByTime(SILENCE_MS);
  }
  expect([seen, asked.length]).toEqual([[], 1]);
  asked[0]?.(failure('EAI_AGAIN'), []);
  expect(seen).toEqual(['EAI_AGAIN', 'EAI_AGAIN', 'EAI_AGAIN']);
});

test.each([
  ['fails', 'EAI_AGAIN', 0, [OLD, OLD]],
  ['has failed for too long', 'EAI_AGAIN', LONG_MS, ['EAI_AGAIN', 'EAI_AGAIN']],
  ['does not know the name', 'ENOTFOUND', 0, ['ENOTFOUND', 'EAI_AGAIN']],
])('where DNS %s, two connections get what is safe', (_, code, laterMs, expected) => {
  known();
  nowMs += laterMs;
  const seen: unknown[] = [];
  connect(seen);
  asked[0]?.(failure(code), []);
  connect(seen);
  asked[1]?.(failure('EAI_AGAIN'), []);
  expect(seen).toEqual(expected);
});
