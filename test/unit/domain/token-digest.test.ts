import fc from 'fast-check';
import { expect, it } from 'vitest';
import { digestOf, LastDigest } from '../../../src/domain/token-digest.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

it('the digest of a connection is the digest of the token, whatever came before', () => {
  const token = fc.oneof(
    fc.constantFrom('', 'a', 'A', '\u0141', '\xc1', '\ud800', '\ufffd'),
    fc.stringMatching(/^[!-~\x80-\xff]{0,9}$/),
  );
  const tokens = fc.array(fc.oneof(token, fc.constant('x'.repeat(3_000))), { maxLength: 20 });
  fc.assert(
    fc.property(tokens, (sent) => {
      const last = new LastDigest();
      expect(sent.map((one) => last.of(one))).toEqual(sent.map(digestOf));
    }),
    { numRuns: generatedCases(1_000) },
  );
});
