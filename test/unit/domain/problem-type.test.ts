import { expect, it } from 'vitest';
import { notFound, problemBody as platformBody } from '../../../platform/src/http/problems.ts';
import { problemBody, Refusal } from '../../../src/domain/problems.ts';

it.each(['https://api.example.com', 'https://api.example.com/', 'https://api.example.com/base/'])(
  'the type of a problem has one slash after the base %s',
  (baseUrl) => {
    const base = baseUrl.replace(/\/$/, '');
    const { text } = problemBody(new Refusal('ResourceNotFound', 'Nothing is here.'), 'id', baseUrl);
    expect(JSON.parse(text).type).toBe(`${base}/errors/resource-not-found`);
    expect(platformBody(notFound('payee', 'p'), baseUrl, 'id').type).toBe(
      `${base}/errors/resource-not-found`,
    );
  },
);

it.each([400, 408, 417, 431])('a %i has the title of its type', (status) => {
  const { text } = problemBody(new Refusal('BadRequest', 'It came late.', { status }), 'id', '');
  expect(JSON.parse(text)).toMatchObject({ title: 'Bad Request', status });
});
