import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { createLocalJWKSet, exportJWK, generateKeyPair } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { CachedTokens } from '../../../../src/identity/cached-tokens.ts';
import { twinOf } from '../../../../src/identity/jwt/signature-malleability.ts';
import { JwtVerifier } from '../../../../src/identity/jwt/verifier.ts';
import { silentIdentityObserver } from '../../../../src/identity/observer.ts';
import { Revocations } from '../../../../src/identity/revocations.ts';
import { AUDIENCE, ISSUER, signWith } from '../../../fixtures/issuer.ts';

const CLAIMS = {
  principal: 'sub',
  type: 'type',
  account: 'account',
  organization: 'organization',
  actsFor: 'actsFor',
};

describe.each(['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'])('%s', (alg) => {
  let token: string;
  let verifier: JwtVerifier;

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    token = await signWith(privateKey, 'key', {}, { alg });
    verifier = new JwtVerifier({
      findKey: createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), kid: 'key', alg }] }),
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: [alg],
      clockToleranceSeconds: 0,
      claims: CLAIMS,
    });
  });

  it('no token that differs in a character is accepted', async () => {
    expect(await verifier.verify(token)).toMatchObject({ outcome: 'known' });
    const characters = 'ABab01-_=.';
    const change = fc.tuple(fc.nat(token.length - 1), fc.constantFrom(...characters));
    await fc.assert(
      fc.asyncProperty(change, async ([position, character]) => {
        const changed = token.slice(0, position) + character + token.slice(position + 1);
        fc.pre(changed !== token);
        expect((await verifier.verify(changed)).outcome).toBe('invalid');
      }),
      { numRuns: 200 },
    );
    for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
      const changed = token.slice(0, -1) + character;
      if (changed !== token) expect((await verifier.verify(changed)).outcome).toBe('invalid');
    }
    for (const ending of ['=', '==', '.', 'A', 'AA']) {
      expect((await verifier.verify(token + ending)).outcome).toBe('invalid');
    }
  });

  it('a revoked token is not accepted through its twin', async () => {
    const twin = twinOf(token);
    expect(twin !== undefined).toBe(alg.startsWith('ES'));
    if (twin === undefined) return;
    expect(twin).not.toBe(token);
    expect(twinOf(twin)).toBe(token);
    expect(await verifier.verify(twin)).toMatchObject({ outcome: 'known' });

    const revocations = new Revocations();
    const identities = new CachedTokens({
      source: 'jwt',
      verifier,
      freshMs: 1000,
      refusedMs: 1000,
      outageMs: 0,
      maxTokens: 10,
      revocations,
      observer: silentIdentityObserver,
    });

    const digestHex = createHash('sha256').update(token).digest('hex');
    revocations.add({
      revoked: { kind: 'token', digestHex },
      atMs: Date.now(),
      untilMs: Date.now() + 60_000,
    });
    expect(await identities.principalOf(twin)).toBeUndefined();
    expect(await identities.principalOf(token)).toBeUndefined();
  });
});
