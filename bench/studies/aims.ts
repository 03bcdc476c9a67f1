import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { makeCertificate } from '../../test/fixtures/certificate.ts';
import type { Running } from '../contestants/contestant.ts';
import { fastifyProxy } from '../contestants/fastify.ts';
import { ACCOUNTS_PER_ORGANIZATION, weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench, CONNECTIONS, REFUSED_ACCOUNTS } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { CHUNKED_PATH } from '../load/upstream.ts';
import type { WrkOptions } from '../load/wrk.ts';
import { table } from '../report/section.ts';

const EIGHT_FIELDS = {
  Accept: 'application/json',
  'Accept-Encoding': 'gzip, deflate, br',
  'Accept-Language': 'en-GB,en;q=0.9',
  'User-Agent': 'payments-client/4.2 (linux; x64)',
  'X-Client-Version': '4.2.1',
  'X-Correlation-Id': '7f9c24e8-3b12-4fef-91e0-5d1b0f9a2c33',
  'X-Feature': 'ledger-v2',
  'X-Region': 'eu-central-1',
};

/** What is measured, beside the plain proxy with the same load. */
interface Case {
  readonly name: string;
  readonly aim: number;
  readonly store?: 'memory' | 'redis';
  /** Beyond the settings of the benchmark's Weir. */
  readonly settings?: Readonly<Record<string, object>>;
  readonly load?: Partial<WrkOptions>;
  /** Whether nearly every request is refused. */
  readonly isRefused?: boolean;
}

function casesOf(tls: object, identity: object, tokensFile: string): readonly Case[] {
  return [
    { name: 'memory', aim: 1.8 },
    { name: 'Redis', aim: 1.6, store: 'redis' },
    { name: 'memory, eight further fields', aim: 1.8, load: { fields: EIGHT_FIELDS } },
    { name: 'Redis, eight further fields', aim: 1.6, store: 'redis', load: { fields: EIGHT_FIELDS } },
    { name: 'refused, memory', aim: 3, isRefused: true },
    { name: 'refused, Redis', aim: 3, store: 'redis', isRefused: true },
    { name: 'refused, eight further fields', aim: 3, isRefused: true, load: { fields: EIGHT_FIELDS } },
    { name: 'POST of 1 KiB', aim: 1.6, load: { path: '/v3/bench', bodyBytes: 1_024 } },
    {
      name: 'behind a trusted proxy',
      aim: 1.6,
      settings: { listen: { trustedProxies: ['127.0.0.1'] } },
      load: { fields: { 'X-Forwarded-For': '203.0.113.7', 'X-Forwarded-Proto': 'https' } },
    },
    { name: 'JWT', aim: 1.6, settings: { identity }, load: { tokensFile } },
    { name: 'listen.tls, plain with TLS', aim: 1.4, settings: { listen: { tls } }, load: { isTls: true } },
    { name: 'chunked response', aim: 1.4, load: { path: CHUNKED_PATH } },
  ];
}

/** Compares neighbouring seconds of Weir and of the plain proxy, because what else the machine does meets both alike. */
export async function measureAims(bench: Bench): Promise<readonly string[]> {
  const tls = { certFile: join(bench.folder, 'server.pem'), keyFile: join(bench.folder, 'server-key.pem') };
  makeCertificate(tls.certFile, tls.keyFile);
  const tokensFile = join(bench.folder, 'tokens');
  const identity = await writeTokens(tokensFile, join(bench.folder, 'key.json'));
  const plain = await bench.start(fastifyProxy('none'), 'plain');
  const plainTls = await bench.start(fastifyProxy('none', tls), 'plain TLS');
  const rows: string[][] = [];
  for (const one of casesOf(tls, identity, tokensFile)) {
    if (!bench.includes(one.name)) continue;
    rows.push(await compare(bench, one, one.load?.isTls ? plainTls : plain));
    bench.say(`${rows.at(-1)?.join(' | ')}`);
  }
  return [
    `CPU time of a request in microseconds, with the access log, ${CONNECTIONS} connections, ${ACCOUNTS} Accounts in turn: medians of ${bench.rounds} pairs of`,
    'alternating seconds, and the ratio (plain ÷ Weir) of the pairs.',
    '',
    ...table(['', 'plain, µs:', 'Weir, µs:', 'ratio:', 'from, to', 'aim:', ''], rows),
  ];
}

/** The row of a case: Weir and the plain proxy, a second each in turn. */
async function compare(bench: Bench, one: Case, plain: Running): Promise<string[]> {
  const { name, aim, store = 'memory', settings, load = {}, isRefused = false } = one;
  const few = isRefused ? { accounts: REFUSED_ACCOUNTS } : {};
  const gateway = await bench.start(weir(store, { settings }), name, isRefused ? { limit: 1, ...few } : {});
  const sides = [
    { name: 'plain', running: plain, options: load },
    { name: 'weir', running: gateway, options: { ...load, ...few, isRefused } },
  ];
  const measure = async ({ running, options }: (typeof sides)[number], seconds = 1) =>
    (await costOf(running, () => bench.strictLoad(running, { ...options, seconds }))).gatewayUs;
  // Until V8 has compiled what is used.
  for (const side of sides) await measure(side, bench.either(3, 1));
  const seen = await bench.inTurn(sides, measure);
  await gateway.stop();
  return [name, ...figuresOf(seen.plain ?? [], seen.weir ?? [], aim)];
}

function figuresOf(plainUs: readonly number[], weirUs: readonly number[], aim: number): string[] {
  const ratios = plainUs.map((us, round) => us / (weirUs[round] ?? Number.NaN));
  const ratio = median(ratios);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const verdict = ratio >= aim ? 'reached' : `missed by ${(aim - ratio).toFixed(2)}`;
  return [median(plainUs).toFixed(1), median(weirUs).toFixed(1), ratio.toFixed(2), range, `${aim}`, verdict];
}

/** Writes a token of each Account, signed with a key of our own. @returns the settings that accept them */
async function writeTokens(tokensFile: string, keyFile: string): Promise<object> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  writeFileSync(keyFile, JSON.stringify({ ...(await exportJWK(publicKey)), alg: 'RS256' }));
  const [issuer, audience] = ['https://login.example.com', 'https://api.example.com'];
  const lines: string[] = [];
  for (let account = 1; account <= ACCOUNTS; account++) {
    const organization = `org_${Math.ceil(account / ACCOUNTS_PER_ORGANIZATION)}`;
    const token = new SignJWT({ account: `acct_${account}`, organization, sub: `svc_${account}` });
    token.setProtectedHeader({ alg: 'RS256' }).setIssuer(issuer).setAudience(audience);
    lines.push(await token.setIssuedAt().setExpirationTime('8h').sign(privateKey));
  }
  writeFileSync(tokensFile, `${lines.join('\n')}\n`);
  return { kind: 'jwt', issuer, audience, keyFile };
}
