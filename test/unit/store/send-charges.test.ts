import type { Callback } from 'ioredis';
import { expect, test } from 'vitest';
import type { RedisClient } from '../../../src/store/redis/scripts.ts';
import { sendCharges } from '../../../src/store/redis/send-charges.ts';
import type { Charge, Decision } from '../../../src/store/store.ts';

const charge: Charge = { buckets: [{ key: 'k', limit: 5, windowSeconds: 1 }], cost: 1 };
const REPLY = Buffer.from('0100000004' + '0000000f4240' + '000000000000' + '065bfeda25e000', 'hex');

/** What becomes of one charge when the server gives this answer. */
function answeredWith(answer: Buffer | null | Error): (string | readonly Decision[])[] {
  const client = {
    async chargeBuffer(_args: readonly unknown[], callback: Callback<Buffer | null>) {
      if (answer instanceof Error) callback(answer);
      else callback(null, answer);
    },
  } as unknown as RedisClient;
  const outcomes: (string | readonly Decision[])[] = [];
  sendCharges(client, [charge], { isSpending: true }, (error, decisions) =>
    outcomes.push(error?.message ?? decisions),
  );
  return outcomes;
}

test('a reply is parsed from its bytes', () => {
  const bucket = { remaining: 4, resetAfterUs: 1_000_000, retryAfterUs: 0 };
  expect(answeredWith(REPLY)).toEqual([
    [{ outcome: 'admitted', buckets: [bucket], chargedAtUs: 1_790_000_000_000_000 }],
  ]);
});

test.each([
  ['cut short', REPLY.subarray(0, 9)],
  ['empty', Buffer.alloc(0)],
  ['no string', null],
])('a reply that is %s is an error, once', (_what, reply) => {
  expect(answeredWith(reply)).toEqual([expect.any(String)]);
});

test('an error of the server or of its connection is final', () => {
  expect(answeredWith(new Error('OOM'))).toEqual(['OOM']);
});
