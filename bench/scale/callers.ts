import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';

/** How callers are identified, and the most Accounts that are measured. An identities file has at most 64 MiB. */
export const KINDS = [
  { name: 'file', most: 100_000 },
  { name: 'jwt', most: 1_000_000 },
  { name: 'keys', most: 100_000 },
  { name: 'directory', most: 100_000 },
] as const;

type Kind = (typeof KINDS)[number]['name'];

const [ISSUER, AUDIENCE] = ['https://login.example.com', 'https://api.example.com'];
const HOURS_SECONDS = 28_800;

/** What a gateway and its load need to know of the callers. */
export interface Callers {
  /** Accounts of the identities file. */
  readonly listed: number;
  readonly settings: Readonly<Record<string, object>>;
  /** Empty for the tokens of the identities file. */
  readonly tokensFile: string;
  stop(): void;
}

/** Callers of this many Accounts. */
export async function callersOf(bench: Bench, kind: Kind, accounts: number): Promise<Callers> {
  if (kind === 'file') return { listed: accounts, settings: {}, tokensFile: '', stop() {} };
  const tokensFile = join(bench.folder, `${kind}-${accounts}`);
  if (kind === 'keys') return keysOf(tokensFile, accounts);
  const keyFile = writeJwts(tokensFile, accounts);
  const identity = { kind: 'jwt', issuer: ISSUER, audience: AUDIENCE, keyFile, cacheSeconds: 3_600 };
  const most = { maxCachedTokens: 2 * accounts };
  const settings = { identity: { ...identity, ...most } };
  if (kind === 'jwt') return { listed: 1, settings, tokensFile, stop() {} };
  const server = await serve((url) => ({ organization: organizationOf(Number(url.split('_').at(-1))) }));
  const directory = {
    kind: 'http',
    url: `http://127.0.0.1:${portOf(server)}/acct/{account}`,
    cacheSeconds: 3_600,
    maxCachedAccounts: 2 * accounts,
  };
  const stop = () => end(server);
  return { listed: 1, settings: { identity: { ...identity, ...most, directory } }, tokensFile, stop };
}

/** API keys, and the endpoint that is asked about each of them for each request. */
async function keysOf(tokensFile: string, accounts: number): Promise<Callers> {
  const owners = new Map<string, string>();
  const keys = Array.from({ length: accounts }, (_, index) => {
    const key = `wk_${'0'.repeat(20)}${index + 1}`;
    owners.set(createHash('sha256').update(key).digest('hex'), `svc_${index + 1}`);
    return key;
  });
  writeFileSync(tokensFile, `${keys.join('\n')}\n`);
  const server = await serve((url) => ({ principal: owners.get(url.slice(1)) }));
  const identity = { kind: 'api-keys', url: `http://127.0.0.1:${portOf(server)}/{digest}` };
  return { listed: accounts, settings: { identity }, tokensFile, stop: () => end(server) };
}

/** Writes a token of each Account. @returns the file of the key that verifies them */
function writeJwts(tokensFile: string, accounts: number): string {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const keyFile = `${tokensFile}.json`;
  writeFileSync(keyFile, JSON.stringify({ ...publicKey.export({ format: 'jwk' }), alg: 'EdDSA' }));
  const lines = Array.from({ length: accounts }, (_, index) => jwtOf(index + 1, privateKey));
  writeFileSync(tokensFile, `${lines.join('\n')}\n`);
  return keyFile;
}

function jwtOf(account: number, key: KeyObject): string {
  const iat = Math.floor(Date.now() / 1_000);
  const times = { iat, exp: iat + HOURS_SECONDS };
  const owner = { account: `acct_${account}`, organization: organizationOf(account), sub: `svc_${account}` };
  const parts = [{ alg: 'EdDSA' }, { iss: ISSUER, aud: AUDIENCE, ...owner, ...times }];
  const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
}

function organizationOf(account: number): string {
  return `org_${Math.ceil(account / ACCOUNTS_PER_ORGANIZATION)}`;
}

async function serve(answerOf: (url: string) => object): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(answerOf(request.url ?? '')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function end(server: Server): void {
  server.closeAllConnections();
  server.close();
}
