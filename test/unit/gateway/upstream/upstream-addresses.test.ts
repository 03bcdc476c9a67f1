import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UpstreamAddresses } from '../../../../src/gateway/upstream/upstream-addresses.ts';
import { Peer, TrustedProxies } from '../../../../src/http/message/fields/forwarded.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const UPSTREAM = new URL('http://upstream.example/base');
const CLIENT = 'http://api.example';
const addresses = new UpstreamAddresses(UPSTREAM, '/base', new TrustedProxies([]));

function rewritten(location: string, host = 'api.example'): string {
  const head = { field: (name: string) => (name === 'host' ? host : undefined) };
  return addresses.translate('location', location, { peer: new Peer(new Socket()), head });
}

/** The host that a browser goes to. */
function hostOf(location: string, at: string): string | undefined {
  return URL.canParse(location, at) ? new URL(location, at).host : undefined;
}

it.each([
  ['/base/\t/evil.example', '/evil.example'],
  ['/base/\t\\evil.example', '/evil.example'],
  ['/base\t//evil.example', '/evil.example'],
  ['/b\tase/\r\n/evil.example', '/evil.example'],
  [' /base/\t/evil.example', '/evil.example'],
  ['/base/\\evil.example', '/evil.example'],
  ['/base/a\tb', '/ab'],
  ['/items/a\tb', '/items/a\tb'],
  ['http://upstream.example/base/\t/evil.example', `${CLIENT}//evil.example`],
  ['http://upst\tream.example/base/items', `${CLIENT}/items`],
  ['/\t/upstream.example/base/items', `${CLIENT}/items`],
  ['https://other.example/a\tb', 'https://other.example/a\tb'],
])('a redirect to %j becomes %j', (sent, expected) => {
  expect(rewritten(sent)).toBe(expected);
});

it('a redirect that stays with the upstream stays with the gateway, however a browser reads it', () => {
  const parts = ['/', '\\', '\t', '\n', ' ', '.', '..', '/base', 'evil.example', '@', ':', '?', '#', '%2f'];
  const starts = [
    '',
    '/base/',
    '/base',
    'http://upstream.example',
    '//upstream.example/base',
    'HTTP://',
    '//',
  ];
  const location = fc
    .tuple(fc.constantFrom(...starts), fc.array(fc.constantFrom(...parts), { maxLength: 7 }))
    .map(([start, rest]) => start + rest.join(''));
  fc.assert(
    fc.property(location, fc.constantFrom('api.example', ''), (sent, host) => {
      if (hostOf(sent, `${UPSTREAM}/`) !== UPSTREAM.host) return;
      const received = hostOf(rewritten(sent, host), `${CLIENT}/`);
      expect(['api.example', UPSTREAM.host]).toContain(received);
    }),
    { numRuns: generatedCases(20_000) },
  );
});
