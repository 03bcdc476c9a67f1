import { fastify } from 'fastify';
import { describe, expect, test } from 'vitest';
import { parseJsonBodies } from '../../src/http/json-body.ts';
import { answerTheRest, createRefusals } from '../../src/http/refusals.ts';
import { useSharedValidators } from '../../src/http/validators.ts';

const app = fastify();
parseJsonBodies(app);
useSharedValidators(app);
answerTheRest(app, createRefusals('http://platform'), { at: () => [] });
const properties = {
  list: { type: 'array', items: { type: 'string' } },
  any: {},
  note: { type: ['string', 'null'] },
};
app.post(
  '/',
  { schema: { body: { type: 'object', additionalProperties: false, properties } } },
  async () => ({}),
);

async function send(
  payload: string,
): Promise<{ status: number; length: number; errors: { field: string }[] }> {
  const headers = { 'content-type': 'application/json' };
  const { statusCode, body } = await app.inject({ method: 'POST', url: '/', payload, headers });
  return { status: statusCode, length: body.length, errors: JSON.parse(body).errors };
}

const repeat = (times: number, text: string) => Array.from({ length: times }, () => text).join();
const nested = (depth: number) => `{"any":${'['.repeat(depth)}1${']'.repeat(depth)}}`;

describe('a body', () => {
  test('with a few errors is answered with all of them', async () => {
    const { status, errors } = await send('{"list":[1,"a",2],"other":3}');
    expect(status).toBe(422);
    expect(errors.map(({ field }) => field)).toEqual(['other', 'list.0', 'list.2']);
  });

  test('with a wrong type is answered with all types that are allowed', async () => {
    const { errors } = await send('{"note":1}');
    expect(errors).toEqual([{ field: 'note', message: 'must be string or null' }]);
  });

  test('with a thousand errors is answered with a hundred', async () => {
    expect((await send(`{"list":[${repeat(1_000, '1')}]}`)).errors).toHaveLength(100);
  });

  test('with half a million errors is answered with one', async () => {
    const { status, errors, length } = await send(`{"list":[${repeat(500_000, '1')}]}`);
    expect(status).toBe(422);
    expect(errors).toEqual([{ field: 'list.0', message: 'must be string' }]);
    expect(length).toBeLessThan(1_000);
  });

  test('may be nested, but not so deep that the stack overflows', async () => {
    expect((await send(nested(98))).status).toBe(200);
    for (const depth of [100, 250_000]) {
      const { status, errors } = await send(nested(depth));
      expect(status).toBe(422);
      expect(errors).toEqual([{ field: 'body', message: 'is nested more than 100 levels deep' }]);
    }
  });

  test('with a text that cannot be stored is answered with its place', async () => {
    const { errors } = await send('{"any":[1,{"a/b":["\\u0000"]}]}');
    expect(errors.map(({ field }) => field)).toEqual(['any.1.a/b.0']);
  });
});
