/**
 * `npx tsx bench/aims/main.ts`, with a fresh build: what a request costs in the deployments that the aims are about, beside the plain
 * proxy. Everything takes turns, a second each, so that what the machine does meanwhile meets all alike. A ratio is that of two
 * neighbouring seconds; the table has the median. `--rounds N` sets how many there are, and `--quick` writes nothing.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { makeCertificate } from '../../test/fixtures/certificate.ts';
import type { Running, Scene } from '../contestants/contestant.ts';
import { fastifyProxy } from '../contestants/fastify.ts';
import { ACCOUNTS_PER_ORGANIZATION, weir } from '../contestants/weir.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { cpuUs } from '../lab/process-table.ts';
import { CHUNKED_PATH, startRedis, startUpstream } from '../load/upstream.ts';
import { type WrkOptions, wrk } from '../load/wrk.ts';
import { ACCOUNTS, CONNECTIONS, FAR_ABOVE, sceneOf } from '../measure/bench.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string' }, quick: { type: 'boolean' } } });
const ROUNDS = Number(values.rounds ?? (values.quick ? 2 : 12));

/** Until V8 has compiled what is used. */
const WARM_UP_SECONDS = values.quick ? 1 : 3;

/** Few enough that nearly every request is one too many. */
const REFUSED_ACCOUNTS = 10;

const folder = mkdtempSync(join(tmpdir(), 'weir-aims-'));
const cores = chooseCores();
const upstream = await startUpstream(folder, cores?.load);
const redis = await startRedis(cores?.load);
const tls = { certFile: join(folder, 'server.pem'), keyFile: join(folder, 'server-key.pem') };
makeCertificate(tls.certFile, tls.keyFile);
const tokensFile = join(folder, 'tokens');
const identity = await writeTokens();

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
  /** Beyond those of the benchmark's Weir. */
  readonly settings?: Readonly<Record<string, object>>;
  readonly load?: Partial<WrkOptions>;
  /** Whether nearly every request is refused. */
  readonly isRefused?: boolean;
}

const CASES: readonly Case[] = [
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

/** A token of each Account, signed with a key of our own. @returns the settings that accept them */
async function writeTokens() {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const keyFile = join(folder, 'key.json');
  writeFileSync(keyFile, JSON.stringify({ ...(await exportJWK(publicKey)), alg: 'RS256' }));
  const [issuer, audience] = ['https://login.example.com', 'https://api.example.com'];
  const lines: string[] = [];
  for (let account = 1; account <= ACCOUNTS; account++) {
    const organization = `org_${Math.ceil(account / ACCOUNTS_PER_ORGANIZATION)}`;
    const claims = { account: `acct_${account}`, organization };
    const token = new SignJWT({ ...claims, sub: `svc_${account}` }).setProtectedHeader({ alg: 'RS256' });
    lines.push(
      await token
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('8h')
        .sign(privateKey),
    );
  }
  writeFileSync(tokensFile, `${lines.join('\n')}\n`);
  return { kind: 'jwt', issuer, audience, keyFile };
}

function sceneFor(name: string, isRefused = false): Scene {
  const limits = isRefused
    ? { limit: 1, accounts: REFUSED_ACCOUNTS }
    : { limit: FAR_ABOVE, accounts: ACCOUNTS };
  return sceneOf({ folder, cores, upstream, redis }, { name: name.replaceAll(/\W+/g, '-'), ...limits });
}

/** CPU time of one request, in microseconds. */
async function costOf(
  { port, pids }: Running,
  { name, load = {}, isRefused = false }: Case,
  seconds = 1,
): Promise<number> {
  const accounts = isRefused ? REFUSED_ACCOUNTS : ACCOUNTS;
  const beforeUs = cpuUs(pids);
  const options = { port, seconds, connections: CONNECTIONS, accounts, cores: cores?.load, ...load };
  const { requests, refused, failed } = await wrk(options);
  const isAsMeant = isRefused ? refused > 0.9 * requests : refused === 0;
  if (failed > 0 || !isAsMeant)
    throw new Error(`${name}: of ${requests} requests, ${refused} were refused and ${failed} failed`);
  return (cpuUs(pids) - beforeUs) / requests;
}

const plain = await fastifyProxy('none').start(sceneFor('plain'));
const plainTls = await fastifyProxy('none', tls).start(sceneFor('plain TLS'));
const rows: string[] = [];
try {
  for (const one of CASES) {
    const beside = one.load?.isTls ? plainTls : plain;
    const gateway = await weir(one.store ?? 'memory', { settings: one.settings }).start(
      sceneFor(one.name, one.isRefused),
    );
    const seen: { readonly plainUs: number; readonly weirUs: number }[] = [];
    const forwarded = { ...one, isRefused: false };
    await costOf(beside, forwarded, WARM_UP_SECONDS);
    await costOf(gateway, one, WARM_UP_SECONDS);
    for (let round = 0; round < ROUNDS; round++) {
      seen.push({ plainUs: await costOf(beside, forwarded), weirUs: await costOf(gateway, one) });
    }
    await gateway.stop();
    const ratios = seen.map(({ plainUs, weirUs }) => plainUs / weirUs);
    const ratio = median(ratios);
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    const [plainUs, weirUs] = [median(seen.map((two) => two.plainUs)), median(seen.map((two) => two.weirUs))];
    const verdict = ratio >= one.aim ? 'reached' : `missed by ${(one.aim - ratio).toFixed(2)}`;
    rows.push(
      `| ${one.name} | ${plainUs.toFixed(1)} | ${weirUs.toFixed(1)} | ${ratio.toFixed(2)} | ${range} | ${one.aim} | ${verdict} |`,
    );
    process.stderr.write(`${rows.at(-1)}\n`);
  }
} finally {
  for (const running of [plain, plainTls, upstream, redis]) await running.stop();
  rmSync(folder, { recursive: true });
}
publishSection(
  `aims-node${process.versions.node.split('.')[0]}`,
  [
    `## Aims, Node ${process.versions.node.split('.')[0]}`,
    '',
    `${provenance(`npx tsx bench/aims/main.ts --rounds ${ROUNDS}`)}, machine load at the end ${loadavg()[0]?.toFixed(1)}.`,
    `CPU time of a request in microseconds, with the access log, ${CONNECTIONS} connections, ${ACCOUNTS} Accounts in turn: medians of ${ROUNDS} pairs of`,
    'alternating seconds, and the ratio (plain ÷ Weir) of the pairs.',
    '',
    '| | plain, µs | Weir, µs | ratio | from, to | aim | |',
    '| --- | --: | --: | --: | --- | --: | --- |',
    ...rows,
  ],
  values.quick,
);
