import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { ownAccounts } from '../../fixtures/own-accounts.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

const LIST = [
  { method: 'GET', path: '/items/', cost: 3 },
  { method: 'POST', path: '/items/', cost: 4 },
  { method: 'GET', path: '/items/{id}/', cost: 5 },
  { method: 'GET', path: '/both', cost: 2 },
  { method: 'GET', path: '/both/', cost: 6 },
  { method: 'GET', path: '/plain', cost: 7 },
  { method: 'GET', path: '/alone', cost: 9 },
  { method: 'GET', path: '/plain/{id}', cost: 8 },
  { method: 'GET', path: '/one/{id}', cost: 8 },
  { method: 'GET', path: '/mixed/{id}/', cost: 1 },
  { method: 'GET', path: '/mixed/dear', cost: 9 },
  { method: 'GET', path: '/mixed/slashed/', cost: 1 },
  { method: 'GET', path: '/mixed/{id}', cost: 6 },
  { method: 'GET', path: '/open', cost: 2, public: true },
  { method: 'GET', path: '/list', cost: 7 },
  { method: 'GET', path: '/list/{id}', cost: 1 },
];

/** A framework that serves one form of a path and redirects to it from the other. */
function redirecting(from: string, to: string): Promise<TestUpstream> {
  return startUpstream((request, response) => {
    if (request.url === from) response.writeHead(301, { Location: to }).end();
    else response.end('{}');
  });
}

/** Each test sends its requests as a caller of its own, because the tests share gateways. */
const CALLERS = Array.from({ length: 50 }, (_, index) => `caller-${index}`);
let callers = 0;

async function start(pathProfile: object, upstream: TestUpstream, unlisted = 'charge'): Promise<TestGateway> {
  const settings = {
    operations: { openapi: 'openapi.yaml', list: LIST, unlisted },
    upstream: { url: upstream.url, pathProfile },
  };
  return startGateway({ upstream, settings, identities: ownAccounts(['service', ...CALLERS]) });
}

const gateways = new Map<string, TestGateway>();
beforeAll(async () => {
  for (const trailingSlash of ['refuse', 'remove', 'distinct', 'same'])
    gateways.set(trailingSlash, await start({ trailingSlash }, await startUpstream()));
});
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close();
});

/** The status, and for a forwarded request the path that the upstream received and the points that it cost. */
async function outcome(trailingSlash: string, method: string, path: string): Promise<string> {
  const gateway = gateways.get(trailingSlash);
  if (gateway === undefined) throw new TypeError(`no gateway has the profile ${trailingSlash}`);
  const { seen: requests } = gateway.upstream;
  const before = requests.length;
  const response = await gateway.send(method, path, { token: CALLERS[callers++] ?? '' });
  const seen = requests[before];
  if (seen === undefined) return `${response.status}`;
  const remaining = remainingOf(response) ?? {};
  const left = remaining['account-read'] ?? remaining['account-write'];
  return `${response.status} ${seen.url} ${left === undefined ? 'free' : 20 - left}`;
}

it.each([
  ['refuse', 'GET', '/items/', '200 /items/ 3'],
  ['refuse', 'HEAD', '/items/?q=1', '200 /items/?q=1 3'],
  ['refuse', 'POST', '/ITEMS/', '200 /ITEMS/ 4'],
  ['refuse', 'GET', '/items/%37/', '200 /items/7/ 5'],
  ['refuse', 'OPTIONS', '/items/', '200 /items/ free'],
  ['refuse', 'GET', '/both/', '200 /both/ 6'],
  ['remove', 'GET', '/items/', '200 /items/ 3'],
  ['remove', 'GET', '/both/', '200 /both/ 6'],
  ['distinct', 'GET', '/items/', '200 /items/ 3'],
  ['same', 'GET', '/items/', '200 /items/ 3'],
  ['same', 'GET', '/both/', '200 /both/ 6'],
])('with the profile %s, %s %s is served as declared: %s', async (profile, method, path, expected) => {
  expect(await outcome(profile, method, path)).toBe(expected);
});

it.each([
  ['refuse', 'GET', '/plain/', '400'],
  ['refuse', 'GET', '/plain/1/', '400'],
  ['refuse', 'GET', '/one/', '400'],
  ['refuse', 'HEAD', '/PLAIN/', '400'],
  ['refuse', 'OPTIONS', '/plain/', '400'],
  ['refuse', 'GET', '/plain.json/', '400'],
  ['refuse', 'DELETE', '/items/', '200 /items/ 1'],
  ['refuse', 'GET', '/elsewhere/', '200 /elsewhere/ 1'],
  ['refuse', 'OPTIONS', '/elsewhere/', '200 /elsewhere/ free'],
  ['remove', 'GET', '/elsewhere/', '200 /elsewhere 1'],
  ['remove', 'GET', '/plain/', '200 /plain 7'],
  ['distinct', 'GET', '/alone/', '200 /alone/ 1'],
  ['same', 'GET', '/list/', '200 /list/ 7'],
  ['same', 'HEAD', '/LIST/?q=/', '200 /LIST/?q=/ 7'],
  ['same', 'POST', '/alone/', '200 /alone/ 1'],
  ['same', 'GET', '/plain/1/', '200 /plain/1/ 8'],
  ['same', 'GET', '/pl%61in/%C3%A9/', '200 /plain/%C3%A9/ 8'],
  ['same', 'OPTIONS', '/plain/', '200 /plain/ free'],
  ['same', 'GET', '/elsewhere/', '200 /elsewhere/ 1'],
  ['same', 'GET', '/', '200 / 1'],
])('with the profile %s, %s %s, which is not declared, is %s', async (profile, method, path, expected) => {
  expect(await outcome(profile, method, path)).toBe(expected);
});

it.each([
  ['refuse', 'GET', '/items', '200 /items 3'],
  ['remove', 'HEAD', '/items/7', '200 /items/7 5'],
  ['refuse', 'GET', '/both', '200 /both 2'],
  ['same', 'GET', '/items', '200 /items 3'],
  ['distinct', 'GET', '/items', '200 /items 1'],
  // A router may prefer the literal of the other form, or the parameter of the same one.
  ['same', 'GET', '/mixed/dear/', '200 /mixed/dear/ 9'],
  ['same', 'GET', '/mixed/slashed', '200 /mixed/slashed 6'],
  ['refuse', 'GET', '/mixed/dear/', '200 /mixed/dear/ 9'],
  ['distinct', 'GET', '/mixed/dear/', '200 /mixed/dear/ 1'],
  // Fastify runs `/plain/{id}` with an empty id.
  ['same', 'GET', '/plain/', '200 /plain/ 8'],
])(
  'with the profile %s, a slash more or less than declared saves nothing: %s %s is %s',
  async (profile, method, path, expected) => {
    expect(await outcome(profile, method, path)).toBe(expected);
  },
);

it('without a setting, a slash at the end is charged like the path without it, and forwarded', async () => {
  const upstream = await startUpstream();
  const gateway = await start({}, upstream, 'reject');
  onTestFinished(() => gateway.close());
  const response = await gateway.send('GET', '/list/');
  expect([response.status, upstream.seen[0]?.url]).toEqual([200, '/list/']);
  expect(remainingOf(response)).toMatchObject({ 'account-read': 13 });
  expect((await gateway.send('GET', '/open/', { token: null })).status).toBe(200);
  expect((await gateway.send('GET', '/nowhere/')).status, 'unlisted').toBe(404);
});

it.each([
  ['/plain/', '/plain'],
  ['/plain', '/plain/'],
  ['/items', '/items/'],
])('a redirect of the framework from %s to %s ends at the resource', async (from, to) => {
  const gateway = await start({}, await redirecting(from, to));
  onTestFinished(() => gateway.close());
  const response = await gateway.send('GET', from);
  expect([response.status, new URL(response.url).pathname]).toEqual([200, to]);
});
