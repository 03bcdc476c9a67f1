import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const API = 'https://api.example.com';

/** What the provider says of its clients and Persons, beyond the standard claims. */
const CLAIMS: Readonly<Record<string, Record<string, unknown>>> = {
  billing: { type: 'ServiceAccount', account: 'acct_1', organization: 'org_1' },
  platform: { type: 'ServiceAccount', organization: 'org_1', actsFor: ['acct_1', 'acct_2'] },
  person_1: { type: 'Person', account: 'acct_2', organization: 'org_1' },
};

let server: Server;
let issuer: string;
let provider: Provider;
let byJwt: TestGateway;
let byIntrospection: TestGateway;

beforeAll(async () => {
  server = createServer((request, response) => provider.callback()(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider = await openProvider();
  const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const { jwks_uri: jwksUrl, introspection_endpoint: url } = metadata as Record<string, string>;
  [byJwt, byIntrospection] = await Promise.all([
    startGateway({
      settings: { identity: { kind: 'jwt', issuer, audience: API, jwksUrl, tokenType: 'at+jwt' } },
      limits: PLENTY,
    }),
    startGateway({
      settings: {
        identity: {
          kind: 'introspection',
          url,
          clientId: 'weir',
          clientSecret: 'weir-secret',
          issuer,
          cacheSeconds: 0,
        },
      },
      limits: PLENTY,
    }),
  ]);
});
afterAll(async () => {
  await Promise.all([byJwt.close(), byIntrospection.close()]);
  server.closeAllConnections();
  server.close();
});

async function openProvider(): Promise<Provider> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const client = (id: string) => ({
    client_id: id,
    client_secret: `${id}-secret`,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  });
  return new Provider(issuer, {
    clients: ['billing', 'platform', 'weir'].map(client),
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['a key of this test'] },
    ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600 },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    extraTokenClaims: (_context, token) => ({
      // An opaque token of a client has no subject of its own.
      sub: subjectOf(token),
      ...CLAIMS[subjectOf(token)],
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: () => true },
      introspection: { enabled: true, allowedPolicy: (_context, caller) => caller.clientId === 'weir' },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: '', audience: API, accessTokenFormat: 'jwt' }),
      },
    },
  });
}

function subjectOf(token: object): string {
  const { accountId, clientId } = token as { accountId?: string; clientId?: string };
  return accountId ?? clientId ?? '';
}

async function post(path: string, client: string, form: Record<string, string>): Promise<Response> {
  const credentials = Buffer.from(`${client}:${client}-secret`).toString('base64');
  return fetch(issuer + path, {
    method: 'POST',
    headers: { Authorization: `Basic ${credentials}` },
    body: new URLSearchParams(form),
  });
}

/** A token by the client credentials grant: a JWT for a named API, an opaque one without. */
async function tokenOf(client: string, form: Record<string, string> = {}): Promise<string> {
  const answer = await post('/token', client, { grant_type: 'client_credentials', ...form });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** As the provider gives it to a Person who has signed in. */
async function tokenOfPerson(resource?: string): Promise<string> {
  const client = await provider.Client.find('billing');
  if (client === undefined) throw new Error('the client is configured');
  const grant = new provider.Grant({ accountId: 'person_1', clientId: client.clientId });
  const grantId = await grant.save();
  const token = new provider.AccessToken({
    accountId: 'person_1',
    client,
    grantId,
    gty: 'authorization_code',
  });
  token.scope = 'openid';
  if (resource !== undefined) {
    token.resourceServer = new provider.ResourceServer(resource, {
      scope: '',
      audience: API,
      accessTokenFormat: 'jwt',
    });
  }
  return token.save();
}

describe.each([
  { way: 'signed tokens', gateway: () => byJwt, resource: API },
  { way: 'introspection of opaque tokens', gateway: () => byIntrospection, resource: undefined },
])('by $way', ({ gateway, resource }) => {
  const form = resource === undefined ? {} : { resource };

  it("a client is its Account's ServiceAccount", async () => {
    const token = await tokenOf('billing', form);
    expect(token.split('.')).toHaveLength(resource === undefined ? 1 : 3);
    const answer = await gateway().send('GET', '/v3/things', { token });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('RateLimit-Policy')).toContain('organization-read');
    expect(gateway().upstream.seen.at(-1)?.headers).toMatchObject({
      'x-principal-id': 'billing',
      'x-account-id': 'acct_1',
      'x-organization-id': 'org_1',
    });
  });

  it("an Organization's client names an Account of it", async () => {
    const token = await tokenOf('platform', form);
    expect((await gateway().send('GET', '/v3/things', { token })).status).toBe(403);
    expect((await gateway().send('GET', '/v3/things', { token, account: 'acct_2' })).status).toBe(200);
    expect((await gateway().send('GET', '/v3/things', { token, account: 'acct_3' })).status).toBe(403);
  });

  it('a Person can call Person-only operations, a client cannot', async () => {
    const person = await tokenOfPerson(resource);
    expect((await gateway().send('GET', '/v3/mfa-factors', { token: person })).status).toBe(200);
    expect(gateway().upstream.seen.at(-1)?.headers['x-principal-id']).toBe('person_1');
    const service = await tokenOf('billing', form);
    expect((await gateway().send('GET', '/v3/mfa-factors', { token: service })).status).toBe(403);
  });
});

it('a token that is revoked at the provider no longer authenticates', async () => {
  const token = await tokenOf('billing');
  expect((await byIntrospection.send('GET', '/v3/things', { token })).status).toBe(200);
  expect((await post('/token/revocation', 'billing', { token })).status).toBe(200);
  expect((await byIntrospection.send('GET', '/v3/things', { token })).status).toBe(401);
});

it('an opaque token is not valid for a gateway that wants signed tokens', async () => {
  const answer = await byJwt.send('GET', '/v3/things', { token: await tokenOf('billing') });
  expect(answer.status).toBe(401);
});
