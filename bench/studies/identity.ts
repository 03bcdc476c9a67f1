import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { andThen } from '../../src/domain/awaitable.ts';
import type { Principal } from '../../src/domain/caller.ts';
import { Refusal } from '../../src/domain/problems.ts';
import { digestOf, TokenTable } from '../../src/domain/token-digest.ts';
import { Revocations } from '../../src/facts/revocations.ts';
import { CachedTokens, type Verifier } from '../../src/identity/cached-tokens.ts';
import { ClaimsDirectory } from '../../src/identity/directory/claims-directory.ts';
import { silentIdentityObserver } from '../../src/identity/identity-observer.ts';
import type { Directory, IdentitySource } from '../../src/identity/identity-source.ts';
import { IntrospectionVerifier } from '../../src/identity/introspection.ts';
import { JwtVerifier } from '../../src/identity/jwt/verifier.ts';
import { StaticIdentities } from '../../src/identity/static.ts';
import { authorise } from '../../src/stages/authorise.ts';
import { type Identified, identify, type RefusedToken } from '../../src/stages/identify.ts';
import { RequestContext } from '../../src/stages/request-context.ts';
import type { Bench } from '../lab/bench.ts';
import { median, usPerCall } from '../lab/turns.ts';
import { table } from '../report/section.ts';

const TOKENS = 200;
const ISSUER = 'https://issuer.example.com';
const API = 'https://api.example.com';
const CLAIMS = {
  principal: 'sub',
  type: 'type',
  account: 'account',
  organization: 'organization',
  actsFor: 'actsFor',
  plan: 'plan',
  periodStartsOn: 'periodStartsOn',
};

/** One request of one of the tokens. */
type Request = (index: number) => Promise<unknown> | unknown;

interface Case {
  readonly name: string;
  readonly request: Request;
}

/** Everything before the charge that concerns the caller: the header, the token, the target Account. */
export async function measureIdentity(bench: Bench): Promise<readonly string[]> {
  const provider = createServer((request, response) => {
    request.resume();
    response.setHeader('Content-Type', 'application/json');
    response.end('{"active":true,"sub":"svc","account":"acct_1","organization":"org_1"}');
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  bench.endWith({
    stop() {
      provider.closeAllConnections();
      provider.close();
    },
  });
  const { port } = provider.address() as AddressInfo;
  const cases = [
    staticCase(),
    ...(await jwtCases('RS256')),
    ...(await jwtCases('ES256')),
    ...introspectionCases(`http://127.0.0.1:${port}/introspect`),
  ];
  for (const { request } of cases) for (let index = 0; index < TOKENS; index++) await request(index);
  const rounds = await bench.inTurn(cases, ({ request }) => usPerCall(request));
  const rows = Object.entries(rounds).map(([name, values]) => [name, median(values).toFixed(2)]);
  return ['', ...table(['header to Caller', 'µs a request, median:'], rows)];
}

/** Header to Caller, as the gateway does it: at once where nothing has to be waited for. */
function whole(source: IdentitySource, directory: Directory, headers: readonly string[]): Request {
  const verifiers = { identities: source, directory, credentials: [] };
  const admitted = (identified: Identified | RefusedToken | Refusal) => {
    if (identified instanceof Refusal || 'refusal' in identified)
      throw new Error('a token of this benchmark was refused');
    return authorise(directory, identified.principal, { access: 'caller' }, 'acct_1');
  };
  return (index) => {
    const source = {
      field: (name: string) => (name === 'authorization' ? headers[index % headers.length] : undefined),
      valuesOf: () => [],
    };
    const identified = identify(verifiers, new RequestContext(source, 'GET', '/'));
    return andThen(identified, admitted);
  };
}

function remembering(verifier: Verifier, freshMs: number): CachedTokens {
  return new CachedTokens({
    source: 'jwt',
    verifier,
    freshMs,
    refusedMs: 0,
    outageMs: 0,
    maxTokens: 50_000,
    revocations: new Revocations(),
    observer: silentIdentityObserver,
  });
}

async function jwtCases(alg: 'RS256' | 'ES256'): Promise<Case[]> {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const set = { keys: [{ ...(await exportJWK(publicKey)), kid: 'key', alg }] };
  const verifier = new JwtVerifier({
    findKey: createLocalJWKSet(set),
    issuer: ISSUER,
    audience: API,
    algorithms: [alg],
    clockToleranceSeconds: 5,
    claims: CLAIMS,
  });
  const headers = await Promise.all(
    Array.from({ length: TOKENS }, async (_, index) => {
      const claims = { sub: `svc_${index}`, account: 'acct_1', organization: 'org_1', scope: 'read write' };
      const jwt = new SignJWT(claims).setProtectedHeader({ alg, kid: 'key', typ: 'at+jwt' });
      return `Bearer ${await jwt.setIssuer(ISSUER).setAudience(API).setIssuedAt().setExpirationTime('1h').sign(privateKey)}`;
    }),
  );
  const directory = new ClaimsDirectory();
  return [
    { name: `${alg}, remembered`, request: whole(remembering(verifier, 3_600_000), directory, headers) },
    { name: `${alg}, verified each time`, request: whole(remembering(verifier, 0), directory, headers) },
  ];
}

function staticCase(): Case {
  const principal: Principal = { id: 'svc', type: 'ServiceAccount', account: 'acct_1', actsFor: new Set() };
  const tokens = Array.from({ length: TOKENS }, (_, index) => `static-token-of-a-usual-length-${index}`);
  const table = new TokenTable(tokens.length);
  for (const token of tokens) table.add(digestOf(token), principal);
  const known = new StaticIdentities({
    tokens: table,
    principals: new Map([[principal.id, principal]]),
    accounts: new Map([['acct_1', { organization: 'org_1' }]]),
  });
  const headers = tokens.map((token) => `Bearer ${token}`);
  return { name: 'static file', request: whole(known, known, headers) };
}

function introspectionCases(url: string): Case[] {
  const verifier = new IntrospectionVerifier({
    url,
    clientId: 'weir',
    clientSecret: 'secret',
    clientAuthentication: 'basic',
    claims: CLAIMS,
    timeoutMs: 5000,
    observer: silentIdentityObserver,
    log: { info() {}, warn() {}, error() {} },
  });
  const headers = Array.from(
    { length: TOKENS },
    (_, index) => `Bearer opaque-token-of-a-usual-length-${index}`,
  );
  const directory = new ClaimsDirectory();
  return [
    {
      name: 'introspection, remembered',
      request: whole(remembering(verifier, 3_600_000), directory, headers),
    },
    {
      name: 'introspection, asked each time (loopback)',
      request: whole(remembering(verifier, 0), directory, headers),
    },
  ];
}
