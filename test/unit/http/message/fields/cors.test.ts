import { expect, it } from 'vitest';
import { addCors, corsAnswer } from '../../../../../src/http/message/fields/cors.ts';
import { FieldSection } from '../../../../../src/http/message/head/field-section.ts';
import { responseLines } from '../../../../../src/http/message/headers.ts';

const APP = 'https://app.example.com';

/** The fields of a response that had these, to a request of this origin. */
function answered(origins: readonly string[], origin: string | undefined, fields: string[] = []): string[] {
  const answer = corsAnswer({ origins, preflight: 'answer', maxAgeSeconds: 0 }, origin);
  const section = FieldSection.of(fields);
  const changes = { isVaried: answer?.isVaried === true, translate: (_: unknown, value: string) => value };
  const lines = responseLines(section, undefined, 200, changes);
  addCors(lines, answer, section);
  return lines.pairs.flat();
}

it.each([
  [[], 'Origin'],
  [['Vary', 'Accept-Encoding'], 'Accept-Encoding, Origin'],
  [['vary', 'Origin'], 'Origin'],
  [['VARY', 'accept, ORIGIN'], 'accept, ORIGIN'],
  [['Vary', 'a', 'X-Other', '1', 'vary', 'b, origin', 'Vary', ''], 'a, b, origin'],
  [['Vary', '*'], '*'],
  [['Vary', 'a', 'Vary', '*'], '*'],
])('a response with %j has one Vary, which is %s', (fields, expected) => {
  for (const origin of [APP, 'https://other.example.com', undefined]) {
    const sent = answered([APP], origin, [...fields]);
    const names = sent.filter((_, index) => index % 2 === 0);
    expect(names.filter((name) => name.toLowerCase() === 'vary')).toEqual(['Vary']);
    expect(sent[sent.indexOf('Vary') + 1]).toBe(expected);
    expect(names.includes('X-Other')).toBe(fields.includes('X-Other'));
    expect(names.includes('Access-Control-Allow-Origin')).toBe(origin === APP);
  }
});

it('for `*`, every response has the same fields and does not vary', () => {
  const fields = answered(['*'], undefined);
  expect(fields.slice(0, 2)).toEqual(['Access-Control-Allow-Origin', '*']);
  expect(answered(['*'], APP)).toEqual(fields);
  expect(fields).not.toContain('Vary');
});

it('without origins, CORS is left to the upstream', () => {
  expect(answered([], APP, ['Vary', 'a'])).toEqual(['Vary', 'a']);
});
