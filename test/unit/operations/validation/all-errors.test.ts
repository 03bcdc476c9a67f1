import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import { createEngine } from '../../../../src/operations/validation/engine/engine.ts';
import { EnoughErrors, ErrorLog } from '../../../../src/operations/validation/engine/error-log.ts';
import { toIssue } from '../../../../src/operations/validation/engine/issue.ts';
import { Meter } from '../../../../src/operations/validation/engine/meter.ts';
import { addIssues } from '../../../../src/operations/validation/parameter-value.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const name = fc.constantFrom('a', 'b', 'c');
const types = fc.constantFrom('string', 'number', 'object', 'array');
/** Schemas whose parts may fail and be dropped, within one another, behind references, and within conditions. */
const { schema } = fc.letrec((tie) => {
  const one = tie('schema') as fc.Arbitrary<object>;
  const some = fc.array(one, { minLength: 1, maxLength: 3 });
  return {
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      types.map((type) => ({ type })),
      fc.array(name, { maxLength: 3 }).map((required) => ({ required: [...new Set(required)] })),
      fc.constantFrom({ additionalProperties: false }, { minItems: 3 }, { $ref: '#/$defs/ab' }, true, false),
      fc.dictionary(name, one).map((properties) => ({ properties })),
      one.map((items) => ({ items })),
      one.map((not) => ({ not })),
      one.map((contains) => ({ contains })),
      fc
        .tuple(one, fc.integer({ max: 2, min: 0 }))
        .map(([contains, maxContains]) => ({ contains, maxContains })),
      one.map((propertyNames) => ({ propertyNames })),
      some.map((anyOf) => ({ anyOf })),
      some.map((oneOf) => ({ oneOf })),
      some.map((allOf) => ({ allOf })),
      fc
        .tuple(one, one, one)
        .map((parts) => Object.fromEntries(['if', 'then', 'else'].map((key, index) => [key, parts[index]]))),
      fc
        .tuple(one, one)
        .map(([within, unevaluatedProperties]) => ({ allOf: [within], unevaluatedProperties })),
    ),
  };
}) as { schema: fc.Arbitrary<object | boolean> };
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('x', 1),
    fc.dictionary(name, tie('value')),
    fc.array(tie('value'), { maxLength: 5 }),
  ),
})) as { value: fc.Arbitrary<unknown> };

const ab = {
  anyOf: [{ required: ['a'] }, { type: 'array', items: { $ref: '#/$defs/ab' } }],
  not: { required: ['b'] },
};
const withReferences = (one: object | boolean) => ({ allOf: [one], $defs: { ab } });

const OPTIONS = {
  allErrors: true,
  strict: false,
  logger: false,
  validateSchema: false,
  meta: false,
} as const;

/** The fields that Ajv itself reports. */
function expected(one: object, given: unknown): FieldErrors {
  const validate = new Ajv2020(OPTIONS).compile(one);
  const errors = new FieldErrors();
  if (!validate(given)) addIssues('', (validate.errors ?? []).map(toIssue), errors);
  return errors;
}

/** The fields that are reported to a client, and whether validation ended early. */
function reported(one: object, given: unknown) {
  const log = new ErrorLog();
  const meter = new Meter(() => 0);
  const validate = createEngine('2020-12', log, meter).compile(one);
  const errors = new FieldErrors();
  let isEnded = false;
  meter.begin(16_384);
  log.begin(16_384);
  try {
    validate(given);
  } catch (error) {
    if (!(error instanceof EnoughErrors)) throw error;
    isEnded = true;
  }
  addIssues('', log.issues, errors);
  return { errors, isEnded };
}

describe('the errors of a body', () => {
  it('are the errors that Ajv reports, without errors of branches that are dropped', () => {
    let failed = 0;
    fc.assert(
      fc.property(schema, fc.array(value, { minLength: 1, maxLength: 4 }), (one, values) => {
        for (const given of values) {
          const known = expected(withReferences(one), given);
          expect(reported(withReferences(one), given).errors.list).toEqual(known.list);
          if (!known.isEmpty) failed++;
        }
      }),
      { numRuns: generatedCases(150) },
    );
    expect(failed).toBeGreaterThan(generatedCases(50));
  });

  it.each([
    ['oneOf', { items: { oneOf: ['a', 'b', 'c'].map((required) => ({ required: [required] })) } }],
    ['required', { items: { required: Array.from({ length: 200 }, (_, index) => `p${index}`) } }],
    [
      'conditions',
      { items: { if: { required: ['a'] }, else: { anyOf: [{ required: ['b'] }, { required: ['c'] }] } } },
    ],
    ['references', { items: { $ref: '#/$defs/ab' } }],
  ])('of %s end at the hundredth field', (_, one) => {
    const given = Array.from({ length: 200 }, () => ({}));
    const { errors, isEnded } = reported({ ...one, $defs: { ab } }, given);
    expect(errors.list).toEqual(expected({ ...one, $defs: { ab } }, given).list);
    expect(errors.list).toHaveLength(100);
    expect(isEnded).toBe(true);
  });

  it('of a wrong type name all types that are allowed', () => {
    const { errors } = reported({ properties: { note: { type: ['string', 'null'] } } }, { note: 1 });
    expect(errors.list.map(({ message }) => message)).toEqual(['must be string or null']);
  });
});
