import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';

function settingsOf(settings: object, env: Record<string, string> = {}) {
  const file = join(mkdtempSync(join(tmpdir(), 'weir-test-')), 'weir.yaml');
  writeFileSync(file, JSON.stringify(settings));
  return loadSettings(file, env);
}

function problemsOf(settings: object, env: Record<string, string> = {}): string {
  try {
    settingsOf(settings, env);
    return '';
  } catch (error) {
    return (error as Error).message.replaceAll(/^.*weir\.yaml:\d+: /gm, '');
  }
}

const route = (prefix: string) => ({ prefix, url: 'http://127.0.0.1:1' });
const AT_9000 = { host: '127.0.0.1', port: 9000 };

it.each([
  ['', {}],
  ['', { listen: { port: 0 }, admin: { port: 0 } }],
  ['', { listen: { host: '127.0.0.2', port: 9000 }, admin: AT_9000 }],
  ['admin.port: is 9000, which is also listen.port', { listen: { port: 9000 }, admin: AT_9000 }],
  ['admin.port: is 8080, which is also listen.port', { admin: { port: 8080 } }],
  ['decisions.port: is 9000, which is also admin.port', { admin: AT_9000, decisions: { listen: AT_9000 } }],
  ['', { listen: 'off', admin: AT_9000, decisions: { port: 9001 } }],
  ['', { listen: { port: 'off' }, decisions: { socketPath: 'weir.sock' } }],
  [
    'listen.port: is off, and Weir does not decide either: set decisions.port, decisions.socketPath or decisions.envoy',
    { listen: false },
  ],
  ['listen: must be a mapping, or off, is "on"', { listen: 'on' }],
  [
    'decisions.socketPath: cannot be combined with decisions.port, which is 9000',
    { decisions: { ...AT_9000, socketPath: 'weir.sock' } },
  ],
  [
    'decisions.tls: cannot be combined with decisions.socketPath',
    { decisions: { socketPath: 'weir.sock', tls: { certFile: 'a', keyFile: 'b' } } },
  ],
  ['', { upstream: { routes: [route('/a'), route('/a/b')] } }],
  ['upstream.routes.1.prefix: /a is listed twice', { upstream: { routes: [route('/a'), route('/a')] } }],
  [
    'upstream.url: must be an http:// or https:// URL without a query, is "http://a/b?c"',
    { upstream: { url: 'http://a/b?c' } },
  ],
])('reports "%s" for %j', (problem, settings) => {
  expect(problemsOf(settings)).toBe(problem);
});

it('refuses a path that no socket can have', () => {
  const socketPath = `/tmp/${'long'.repeat(30)}.sock`;
  expect(problemsOf({ decisions: { socketPath } })).toBe(
    `decisions.socketPath: must have 107 bytes at most: ${socketPath}`,
  );
});

it('reads WEIR_PORT as a number or off, over what the file has', () => {
  const decisions = { port: 9000 };
  expect(settingsOf({ listen: 'off', decisions }, { WEIR_PORT: '8081' }).listen.port).toBe(8081);
  expect(settingsOf({ listen: { port: 8081 }, decisions }, { WEIR_PORT: 'off' }).listen.port).toBe('off');
  expect(settingsOf({ listen: 'off', decisions }).listen).toMatchObject({
    port: 'off',
    maxConnections: 10_000,
  });
  expect(problemsOf({}, { WEIR_LISTEN: 'off' })).toContain(
    'listen: WEIR_LISTEN does not set it: use WEIR_PORT',
  );
  expect(problemsOf({}, { WEIR_PORT: 'none' })).toBe(
    'WEIR_PORT: listen.port: must be a whole number from 0 to 65535, or off, is "none"',
  );
});

it('names the variable that set an address range', () => {
  expect(problemsOf({}, { WEIR_DECISIONS_TRUSTED: '127.0.0.1,10.0.0.0/99' })).toBe(
    'WEIR_DECISIONS_TRUSTED: decisions.trusted.1: must be an address or a CIDR range such as 10.0.0.0/8, is "10.0.0.0/99"',
  );
});

it('reports every range that is not one, and other problems of the section, each once', () => {
  const listen = { trustedProxies: ['10.0.0.0/33', 'foo', '010.0.0.1', '10.0.0.0/8'], maxBodyBytes: -1 };
  const problems = problemsOf({ listen }).split('\n');
  expect(problems.map((one) => one.split(': ')[0])).toEqual([
    'listen.trustedProxies.1',
    'listen.maxBodyBytes',
    'listen.trustedProxies.0',
    'listen.trustedProxies.2',
  ]);
});
