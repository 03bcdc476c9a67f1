import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';

function problemsOf(settings: object, env: Record<string, string> = {}): string {
  const file = join(mkdtempSync(join(tmpdir(), 'weir-test-')), 'weir.yaml');
  writeFileSync(file, JSON.stringify(settings));
  try {
    loadSettings(file, env);
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
  ['', { upstream: { routes: [route('/a'), route('/a/b')] } }],
  ['upstream.routes.1.prefix: /a is listed twice', { upstream: { routes: [route('/a'), route('/a')] } }],
  [
    'upstream.url: must be an http:// or https:// URL without a query, is "http://a/b?c"',
    { upstream: { url: 'http://a/b?c' } },
  ],
])('reports "%s" for %j', (problem, settings) => {
  expect(problemsOf(settings)).toBe(problem);
});

it('names the variable that set an address range', () => {
  expect(problemsOf({}, { WEIR_DECISIONS_TRUSTED: '127.0.0.1,10.0.0.0/99' })).toBe(
    'WEIR_DECISIONS_TRUSTED: decisions.trusted.1: must be an address or a CIDR range such as 10.0.0.0/8, is "10.0.0.0/99"',
  );
});
