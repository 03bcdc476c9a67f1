import { Type } from 'typebox';
import { count, httpUrl, milliseconds, section } from './section.ts';

const file = (description: string) =>
  Type.Optional(Type.String({ description, minLength: 1, file: true, expects: 'the path of a file' }));

const tls = Type.Optional(
  Type.Object(
    {
      caFile: file('Certificate authority to trust in place of the system ones.'),
      certFile: file('Client certificate.'),
      keyFile: file("Client certificate's key."),
      serverName: Type.Optional(
        Type.String({ description: 'Name that the certificate must bear.', minLength: 1 }),
      ),
      verify: Type.Boolean({ description: 'Refuse a certificate that does not verify.', default: true }),
    },
    { description: 'How to speak to an https:// upstream.', additionalProperties: false },
  ),
);

const choice = <Word extends string>(description: string, words: readonly [Word, ...Word[]]) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description, default: words[0] },
  );

const pathProfile = section("How the upstream's router reads a path; see docs/proxy.md.", {
  case: choice('Are `/Things` and `/things` one operation?', ['insensitive', 'sensitive']),
  trailingSlash: choice('`/things/`: refuse it, remove the slash, or take it for a path of its own.', [
    'refuse',
    'remove',
    'distinct',
  ]),
  duplicateSlashes: choice('`/a//b`: refuse it, merge the slashes, or take it for a path of its own.', [
    'refuse',
    'merge',
    'distinct',
  ]),
  matrixParameters: choice('`/a;x=1`: refuse it, remove the parameters, or take `;` literally.', [
    'refuse',
    'remove',
    'literal',
  ]),
  asciiForms: choice(
    'Characters that case folding or NFKC turns into ASCII, such as the Kelvin sign: refuse them, or take them for themselves.',
    ['refuse', 'distinct'],
  ),
});

/** The service behind the gateway. */
export const upstreamSchema = section('The service behind the gateway.', {
  url: httpUrl('Where requests are forwarded to.', 'http://127.0.0.1:3000'),
  tls,
  routes: Type.Array(
    Type.Object(
      {
        prefix: Type.String({
          description: 'Paths that go there: this one and all below it; the longest prefix wins.',
          pattern: '^(/[^\\s/?#%;\\\\]+)+$',
          expects: 'a path such as /v3/search',
        }),
        url: httpUrl('Where they are forwarded to.'),
        tls,
      },
      { additionalProperties: false },
    ),
    { description: 'Further upstreams, by path prefix.', default: [], formerly: 'others' },
  ),
  pathProfile,
  connections: count('Sockets to each upstream; each carries one request at a time.', 512),
  unauthenticatedPercent: Type.Integer({
    description: 'Share of those sockets, at least one, for requests without a caller (OPTIONS); then 503.',
    default: 5,
    minimum: 1,
    maximum: 100,
  }),
  maxWaiting: count('Requests that wait for a socket; further ones are answered 503.', 1_024),
  connectTimeoutMs: milliseconds('How long a connection may take.', 5_000),
  headersTimeoutMs: milliseconds('How long the response header may take.', 60_000),
  bodyTimeoutMs: milliseconds('Longest silence within a response body.', 300_000),
  // Node servers close idle sockets after 5 s: be the first to.
  keepAliveTimeoutMs: milliseconds('How long an idle socket is kept.', 4_000),
});
