import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  escapeExpression,
  isParameter,
  parameterExpression,
  segmentParts,
} from '../../../../src/operations/documents/segment.ts';
import type { ListedOperation } from '../../../../src/operations/listed-operation.ts';
import { OperationTable } from '../../../../src/stages/match.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';
import { expectLinearTime } from '../../../fixtures/growth.ts';

function operation(path: string): ListedOperation {
  const place = { file: 'test', path: '', line: () => undefined };
  const kinds = { kind: 'read', access: 'caller', listed: true, validation: 'none' } as const;
  const places = { writtenAt: place, costWrittenAt: undefined, rules: undefined };
  return { id: path, method: 'GET', path, cost: 9, ...kinds, ...places };
}

function expressionOf(segment: string, parameter: (behind: readonly string[]) => string): RegExp {
  const parts = segmentParts(segment).map((part, index, all) =>
    isParameter(index) ? `(${parameter(all.slice(index + 1))})` : escapeExpression(part),
  );
  return new RegExp(`^${parts.join('')}$`);
}

describe('a segment with several parameters', () => {
  it('is read as the expression that tries every end of each parameter reads it', () => {
    const part = fc.constantFrom('{p}', '-', '.', 'ab', 'aab', '::', '(');
    const template = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
    const text = fc
      .array(fc.constantFrom('a', 'b', '-', '.', ':', '('), { maxLength: 14 })
      .map((characters) => characters.join(''));
    fc.assert(
      fc.property(template, text, (segment, one) => {
        const expected = expressionOf(segment, () => '[^/]+?').exec(one);
        expect(expressionOf(segment, parameterExpression).exec(one)).toEqual(expected);
      }),
      { numRuns: generatedCases(5000) },
    );
  });

  it.each(['{a}-{b}.json', '{a}-{b}-{c}.json', '{a}{b}-{c}-{d}', '{a}--{b}--{c}.json'])(
    '%s is looked up in time that grows no faster than the path',
    (segment) => {
      const prices = new OperationTable([operation(`/x/${segment}/end`)], 'charge');
      expectLinearTime((pairs) => {
        const path = `/x/${'a-'.repeat(pairs)}.jso`;
        return () => expect(prices.find('GET', path)).toMatchObject({ id: 'unlisted' });
      }, 1_000);
    },
  );
});
