import { randomBytes } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, exportSPKI, generateKeyPair } from 'jose';
import { expect, it } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';
import { AUDIENCE, type Claims, ISSUER, signWith } from '../fixtures/issuer.ts';

async function statusesWith(keys: string, more: Claims, tokens: readonly string[]): Promise<number[]> {
  const keyFile = join(await mkdtemp(join(tmpdir(), 'weir-test-')), 'keys');
  await writeFile(keyFile, keys);
  const identity = { kind: 'jwt', issuer: ISSUER, audience: [AUDIENCE, 'another'], keyFile, ...more };
  const gateway = await startGateway({ settings: { identity } });
  const answers = await Promise.all(tokens.map((token) => gateway.send('GET', '/v3/things', { token })));
  await gateway.close();
  return answers.map(({ status }) => status);
}

it('public keys in PEM or as a JWKS, for tokens with and without a key id', async () => {
  const [first, second] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  const stranger = await generateKeyPair('ES256');
  const header = { alg: 'ES256' };
  const byFirst = await signWith(first.privateKey, undefined, {}, header);
  const bySecond = await signWith(second.privateKey, undefined, {}, header);
  const byStranger = await signWith(stranger.privateKey, undefined, {}, header);
  const named = await signWith(second.privateKey, 'b', {}, header);
  const misnamed = await signWith(second.privateKey, 'a', {}, header);

  expect(await statusesWith(await exportSPKI(first.publicKey), {}, [byFirst, bySecond])).toEqual([200, 401]);
  const keys = [
    { ...(await exportJWK(first.publicKey)), kid: 'a' },
    { ...(await exportJWK(second.publicKey)), kid: 'b' },
  ];
  const tokens = [byFirst, bySecond, byStranger, named, misnamed];
  expect(await statusesWith(JSON.stringify({ keys }), {}, tokens)).toEqual([200, 200, 401, 200, 401]);
});

it('a key without an id, as in PEM, verifies tokens that name one', async () => {
  const [first, second] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  const header = { alg: 'ES256' };
  const byFirst = await signWith(first.privateKey, 'of the issuer', {}, header);
  const bySecond = await signWith(second.privateKey, 'b', {}, header);
  const pem = await exportSPKI(first.publicKey);
  expect(await statusesWith(pem, {}, [byFirst, bySecond])).toEqual([200, 401]);
  expect(
    await statusesWith(`${pem}\n${await exportSPKI(second.publicKey)}`, {}, [byFirst, bySecond]),
  ).toEqual([200, 200]);

  const keys = [await exportJWK(first.publicKey), { ...(await exportJWK(second.publicKey)), kid: 'b' }];
  // Where a key has the id, no other is tried.
  const misnamed = await signWith(first.privateKey, 'b', {}, header);
  expect(await statusesWith(JSON.stringify({ keys }), {}, [byFirst, bySecond, misnamed])).toEqual([
    200, 200, 401,
  ]);
});

it('a shared secret works only with symmetric algorithms', async () => {
  const secret = randomBytes(32);
  const jwk = JSON.stringify({ kty: 'oct', k: secret.toString('base64url') });
  const good = await signWith(secret, undefined, {}, { alg: 'HS256' });
  const bad = await signWith(randomBytes(32), undefined, {}, { alg: 'HS256' });
  const other = await signWith(secret, undefined, {}, { alg: 'HS384' });
  expect(await statusesWith(jwk, { algorithms: ['HS256'] }, [good, bad, other])).toEqual([200, 401, 401]);
});

it('Accounts can be a list or space-separated text', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keyFile = await exportSPKI(publicKey);
  const claims = { actsFor: 'acct_2 acct_3' };
  const token = await signWith(privateKey, undefined, claims, { alg: 'ES256' });
  const file = join(await mkdtemp(join(tmpdir(), 'weir-test-')), 'keys');
  await writeFile(file, keyFile);
  const identity = { kind: 'jwt', issuer: ISSUER, audience: AUDIENCE, keyFile: file };
  const gateway = await startGateway({ settings: { identity } });
  const statusOf = async (account: string) =>
    (await gateway.send('GET', '/v3/things', { token, account })).status;
  expect(await Promise.all(['acct_2', 'acct_3', 'acct_4'].map(statusOf))).toEqual([200, 200, 403]);
  await gateway.close();
});
