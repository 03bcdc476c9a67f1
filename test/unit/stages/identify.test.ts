import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Awaitable, andThen } from '../../../src/domain/awaitable.ts';
import type { Principal } from '../../../src/domain/caller.ts';
import { Refusal } from '../../../src/domain/problems.ts';
import type { Authentication, IdentitySource } from '../../../src/identity/identity-source.ts';
import { identify } from '../../../src/stages/identify.ts';
import { RequestContext } from '../../../src/stages/request-context.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const GOOD = 'a-good.token_~+/=';
const PRINCIPAL: Principal = { id: 'svc_1', type: 'ServiceAccount', account: 'acct_1', actsFor: new Set() };

function sourceThatSays(answer: (token: string) => Awaitable<Authentication>): IdentitySource {
  return { principalOf: answer };
}

const strict = sourceThatSays((token) => (token === GOOD ? PRINCIPAL : 'unknown-token'));

function identified(authorization: string | undefined, source = strict) {
  const directory = { find: () => undefined };
  const verifiers = { identities: source, directory, credentials: [] };
  const sent = {
    field: (name: string) => (name === 'authorization' ? authorization : undefined),
    valuesOf: () => [],
  };
  const answer = identify(verifiers, new RequestContext(sent, 'GET', '/'));
  const principal = (one: Awaited<typeof answer>) =>
    one instanceof Refusal ? one : 'refusal' in one ? one.refusal : one.principal;
  return andThen(answer, principal);
}

describe('the Authorization header', () => {
  it('is "Bearer", a space and a token, and is answered at once', () => {
    expect(identified(`Bearer ${GOOD}`)).toBe(PRINCIPAL);
  });

  it('has a scheme in any case', () => {
    const scheme = fc.mixedCase(fc.constant('Bearer'));
    fc.assert(
      fc.property(scheme, (spelled) => {
        expect(identified(`${spelled} ${GOOD}`)).toBe(PRINCIPAL);
      }),
    );
  });

  it('any other value is a 401 with a challenge, and never throws', () => {
    const header = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.string().map((text) => `Bearer ${text}`),
      fc.string().map((text) => `Bearer ${GOOD}${text} `),
      fc.constantFrom('Bearer', 'Bearer ', 'bearer x', ' Bearer x', `Bearer\t${GOOD}`, `Bearer ${GOOD},`),
    );
    fc.assert(
      fc.property(header, (authorization) => {
        fc.pre(authorization !== `Bearer ${GOOD}`);
        const refusal = identified(authorization);
        expect(refusal).toMatchObject({ code: 'Unauthenticated', status: 401 });
        expect((refusal as Refusal).headers?.['WWW-Authenticate']).toMatch(/^Bearer realm="weir"/);
      }),
      { numRuns: generatedCases(3000) },
    );
  });
});

it('what cannot be checked is a 503, at once or later', async () => {
  const now = sourceThatSays(() => 'unavailable');
  const later = sourceThatSays(async () => 'unavailable' as const);
  for (const source of [now, later]) {
    const refusal = await identified(`Bearer ${GOOD}`, source);
    expect(refusal).toBeInstanceOf(Refusal);
    expect(refusal).toMatchObject({ code: 'ServiceUnavailable', status: 503 });
  }
});
