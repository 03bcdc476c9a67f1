import type { Command, Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { sendCharges } from '../../../src/store/redis/scripts.ts';
import type { Charge, Decision } from '../../../src/store/store.ts';

const charge: Charge = { buckets: [{ key: 'k', limit: 5, windowSeconds: 1 }], cost: 1 };
const REPLY = Buffer.from('0100000004' + '0000000f4240' + '000000000000', 'hex');

/** What becomes of one charge when the server gives these answers, one to each call; and the calls. */
function answeredWith(...answers: (Buffer | Error)[]) {
  const calls: string[] = [];
  const connection = {};
  const client = {
    sendCommand(command: Command) {
      calls.push(String(command.toWritable(connection)));
      const answer = answers.shift();
      if (answer instanceof Error) command.reject(answer);
      else command.resolve(answer);
    },
  } as unknown as Redis;
  const outcomes: (string | readonly Decision[])[] = [];
  sendCharges(client, [charge], { slot: 0, isSpending: true }, (error, decisions) =>
    outcomes.push(error?.message ?? decisions),
  );
  return { outcomes, calls };
}

test('a reply is parsed from its bytes', () => {
  const { outcomes } = answeredWith(REPLY);
  const bucket = { remaining: 4, resetAfterUs: 1_000_000, retryAfterUs: 0 };
  expect(outcomes).toEqual([[{ outcome: 'admitted', buckets: [bucket] }]]);
});

test.each([
  ['cut short', REPLY.subarray(0, 9)],
  ['empty', Buffer.alloc(0)],
  ['no string', null as unknown as Buffer],
])('a reply that is %s is an error, once', (_what, reply) => {
  const { outcomes } = answeredWith(reply);
  expect(outcomes).toEqual([expect.any(String)]);
});

test('a server without the script gets it again, and any other error is final', () => {
  const lost = new Error('NOSCRIPT No matching script.');
  const { outcomes, calls } = answeredWith(lost, REPLY);
  expect(outcomes).toEqual([[expect.objectContaining({ outcome: 'admitted' })]]);
  expect(calls.map((call) => /\bEVAL(SHA)?\b/.exec(call)?.[0])).toEqual(['EVAL', 'EVAL']);
  expect(answeredWith(lost, lost).outcomes).toEqual([lost.message]);
  expect(answeredWith(new Error('OOM')).outcomes).toEqual(['OOM']);
});
