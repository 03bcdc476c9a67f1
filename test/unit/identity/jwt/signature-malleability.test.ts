import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { type CryptoKey, createLocalJWKSet, exportJWK, generateKeyPair } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { Revocations, RevokedToken } from '../../../../src/facts/revocations.ts';
import { CachedTokens } from '../../../../src/identity/cached-tokens.ts';
import { silentIdentityObserver } from '../../../../src/identity/identity-observer.ts';
import { isCanonical, twinOf } from '../../../../src/identity/jwt/signature-malleability.ts';
import { JwtVerifier } from '../../../../src/identity/jwt/verifier.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';
import { AUDIENCE, ISSUER, signWith } from '../../../fixtures/issuer.ts';

const CLAIMS = {
  principal: 'sub',
  type: 'type',
  account: 'account',
  organization: 'organization',
  actsFor: 'actsFor',
  plan: 'plan',
  periodStartsOn: 'periodStartsOn',
};

describe.each(['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'])('%s', (alg) => {
  let token: string;
  let verifier: JwtVerifier;

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    do token = await signWith(privateKey, 'key', {}, { alg });
    while (signatureOf(token)[0] === 0); // one in 256, and an RSA signature of that kind has a twin: see below
    verifier = await verifierOf(alg, publicKey);
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
      { numRuns: generatedCases(200) },
    );
    for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
      const changed = token.slice(0, -1) + character;
      if (changed !== token) expect((await verifier.verify(changed)).outcome).toBe('invalid');
    }
    for (const ending of ['=', '==', '.', 'A', 'AA']) {
      expect((await verifier.verify(token + ending)).outcome).toBe('invalid');
    }
  });

  it('a revoked token is not accepted through its twin, though both are cached, and an undone revocation ends for both', async () => {
    const twin = twinOf(token);
    expect(twin !== undefined).toBe(alg.startsWith('ES'));
    if (twin === undefined) return;
    expect(twin).not.toBe(token);
    expect(twinOf(twin)).toBe(token);
    expect(await verifier.verify(twin)).toMatchObject({ outcome: 'known' });
    for (const [revoked, other] of [
      [token, twin],
      [twin, token],
    ] as const) {
      const revocations = new Revocations();
      const fresh = cachedTokens(verifier, revocations);
      const cached = cachedTokens(verifier, revocations);
      const bothOf = async (identities: CachedTokens) => [
        !((await identities.principalOf(revoked)) instanceof RevokedToken),
        !((await identities.principalOf(other)) instanceof RevokedToken),
      ];
      expect(await bothOf(cached)).toEqual([true, true]);
      revocations.add(revocationOf(revoked));
      expect(await bothOf(cached)).toEqual([false, false]);
      expect(await bothOf(fresh)).toEqual([false, false]);
      revocations.add({ ...revocationOf(revoked), atMs: Date.now() + 1, isRemoved: true });
      expect(await bothOf(cached)).toEqual([true, true]);
      expect(await bothOf(fresh)).toEqual([true, true]);
    }
  });
});

const BAD_SIGNATURE = { outcome: 'invalid', isFinal: true, fault: 'signature' };

describe.each(['RS256', 'PS256', 'PS512'])('%s', (alg) => {
  it('a signature without its leading zeros is not accepted', async () => {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    const verifier = await verifierOf(alg, publicKey);
    const { token, stripped } = await strippable(() => signWith(privateKey, 'key', {}, { alg }));
    expect(await verifier.verify(token)).toMatchObject({ outcome: 'known' });
    expect(await verifier.verify(stripped)).toEqual(BAD_SIGNATURE);
    const key = { ...(await exportJWK(publicKey)), kid: 'key', alg };
    const ofSeveralKeys = new JwtVerifier({
      ...optionsOf(alg),
      findKey: createLocalJWKSet({ keys: [key, key] }),
    });
    expect(await ofSeveralKeys.verify(token)).toMatchObject({ outcome: 'known' });
    expect(await ofSeveralKeys.verify(stripped)).toEqual(BAD_SIGNATURE);
    expect(twinOf(stripped)).toBe(token);
    expect(twinOf(token)).toBe(stripped);
  });
});

it('an Ed25519 signature with a second half above the order is not canonical', async () => {
  const { privateKey } = await generateKeyPair('EdDSA');
  const token = await signWith(privateKey, 'key', {}, { alg: 'EdDSA' });
  const end = token.lastIndexOf('.') + 1;
  const signature = signatureOf(token);
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`);
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const larger = Buffer.from((s + order).toString(16).padStart(64, '0'), 'hex').reverse();
  larger.copy(signature, 32);
  expect(isCanonical(token)).toBe(true);
  expect(isCanonical(token.slice(0, end) + signature.toString('base64url'))).toBe(false);
});

function optionsOf(alg: string) {
  return {
    issuer: ISSUER,
    audience: AUDIENCE,
    algorithms: [alg],
    clockToleranceSeconds: 0,
    claims: CLAIMS,
  };
}

async function verifierOf(alg: string, publicKey: CryptoKey): Promise<JwtVerifier> {
  const key = { ...(await exportJWK(publicKey)), kid: 'key', alg };
  return new JwtVerifier({ ...optionsOf(alg), findKey: createLocalJWKSet({ keys: [key] }) });
}

function cachedTokens(verifier: JwtVerifier, revocations: Revocations): CachedTokens {
  return new CachedTokens({
    source: 'jwt',
    verifier,
    freshMs: 60_000,
    refusedMs: 60_000,
    outageMs: 0,
    maxTokens: 10,
    revocations,
    observer: silentIdentityObserver,
  });
}

function revocationOf(token: string) {
  const digestHex = createHash('sha256').update(token).digest('hex');
  const nowMs = Date.now();
  return { revoked: { kind: 'token', digestHex }, atMs: nowMs, untilMs: nowMs + 3_600_000 } as const;
}

function signatureOf(token: string): Buffer {
  return Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url');
}

/** One signature of 256 begins with a zero; none of 10,000 does with a probability of 1e-17. */
async function strippable(sign: () => Promise<string>) {
  for (let tries = 0; tries < 10_000; tries++) {
    const token = await sign();
    const end = token.lastIndexOf('.') + 1;
    const signature = signatureOf(token);
    const zeros = signature.findIndex((octet) => octet !== 0);
    if (zeros > 0)
      return { token, stripped: token.slice(0, end) + signature.subarray(zeros).toString('base64url') };
  }
  throw new Error('no signature began with a zero');
}
