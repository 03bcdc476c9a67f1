import { fastify } from 'fastify';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { answerTheRest } from '../../../src/admin/access.ts';

it('an error that no route expects is answered with JSON, and logged with its route', async () => {
  const lines: string[] = [];
  const app = fastify();
  answerTheRest(app, pino({}, { write: (line: string) => lines.push(line) }));
  app.get('/usage/:account', () => {
    throw new TypeError('x is not a function');
  });
  const answer = await app.inject('/usage/acct_1');
  expect([answer.statusCode, answer.json()]).toEqual([500, { error: 'x is not a function' }]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      level: 50,
      msg: 'the admin port failed',
      path: '/usage/:account',
      err: expect.objectContaining({ message: 'x is not a function', stack: expect.any(String) }),
    }),
  ]);

  expect((await app.inject('/nothing')).statusCode).toBe(404);
  expect(lines).toHaveLength(1);
});
