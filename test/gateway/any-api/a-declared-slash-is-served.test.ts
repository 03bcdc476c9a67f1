import { afterEach, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

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
];

let gateway: TestGateway;
afterEach(() => gateway.close());

/** The status, and for a forwarded request the path that the upstream received and the points that it cost. */
async function outcome(trailingSlash: string, method: string, path: string): Promise<string> {
  const upstream = await startUpstream();
  const settings = {
    operations: { openapi: 'openapi.yaml', list: LIST },
    upstream: { url: upstream.url, pathProfile: { trailingSlash } },
  };
  gateway = await startGateway({ upstream, settings });
  const response = await gateway.send(method, path);
  const seen = upstream.seen[0];
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
])('with the profile %s, %s %s is served as declared: %s', async (profile, method, path, expected) => {
  expect(await outcome(profile, method, path)).toBe(expected);
});

it.each([
  ['refuse', 'GET', '/plain/', '400'],
  ['refuse', 'GET', '/plain/1/', '400'],
  ['refuse', 'GET', '/one/', '400'],
  ['refuse', 'HEAD', '/PLAIN/', '400'],
  ['refuse', 'OPTIONS', '/plain/', '400'],
  ['refuse', 'DELETE', '/items/', '200 /items/ 1'],
  ['refuse', 'GET', '/elsewhere/', '200 /elsewhere/ 1'],
  ['refuse', 'OPTIONS', '/elsewhere/', '200 /elsewhere/ free'],
  ['remove', 'GET', '/elsewhere/', '200 /elsewhere 1'],
  ['remove', 'GET', '/plain/', '200 /plain 7'],
  ['distinct', 'GET', '/alone/', '200 /alone/ 1'],
])('with the profile %s, %s %s, which is not declared, is %s', async (profile, method, path, expected) => {
  expect(await outcome(profile, method, path)).toBe(expected);
});

it.each([
  ['refuse', 'GET', '/items', '200 /items 3'],
  ['remove', 'HEAD', '/items/7', '200 /items/7 5'],
  ['refuse', 'GET', '/both', '200 /both 2'],
  ['distinct', 'GET', '/items', '200 /items 1'],
])(
  'with the profile %s, leaving out a declared slash saves nothing: %s %s is %s',
  async (profile, method, path, expected) => {
    expect(await outcome(profile, method, path)).toBe(expected);
  },
);
