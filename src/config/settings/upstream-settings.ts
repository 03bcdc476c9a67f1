import { Type } from 'typebox';
import {
  choice,
  closed,
  count,
  flag,
  httpUrl,
  list,
  literals,
  milliseconds,
  percent,
  section,
  tlsFiles,
  whole,
} from './section.ts';

const tls = Type.Optional(
  closed(
    { ...tlsFiles, verify: flag('Reject a server certificate that cannot be verified.', true) },
    { description: 'TLS settings for an https:// upstream.' },
  ),
);

/** The default keeps clients from choosing the host in the links that an application builds from Host. */
const HOSTS = ['upstream', 'preserve'] as const;

const pathProfile = section("How the upstream's router interprets paths. See docs/proxy.md.", {
  case: choice('Whether `/Things` and `/things` are different operations.', ['insensitive', 'sensitive']),
  trailingSlash: choice(
    '`/things/` where only `/things` is declared: charge it as the same path and forward it with its slash, refuse it, remove the slash, or treat it as a different path.',
    ['same', 'refuse', 'remove', 'distinct'],
  ),
  duplicateSlashes: choice('`/a//b`: refuse it, merge the slashes, or treat it as a different path.', [
    'refuse',
    'merge',
    'distinct',
  ]),
  matrixParameters: choice(
    '`/a;x=1`: refuse it, remove the parameters, or treat `;` as an ordinary character.',
    ['refuse', 'remove', 'literal'],
  ),
  asciiForms: choice(
    'Characters that case folding or NFKC maps to ASCII, such as the Kelvin sign: refuse them, or treat them as distinct.',
    ['refuse', 'distinct'],
  ),
});

/** The service behind the gateway. */
export const upstreamSchema = section('The service behind the gateway.', {
  url: httpUrl('URL that requests are forwarded to.', { default: 'http://127.0.0.1:3000' }),
  tls,
  host: choice(
    '`Host` of forwarded requests: `upstream` sends the host of `url`, `preserve` the one that the client sent.',
    HOSTS,
  ),
  routes: list(
    'Additional upstreams, by path prefix. See docs/proxy.md.',
    closed({
      prefix: Type.String({
        description: 'Path prefix, matched by whole segments. The longest matching prefix wins.',
        pattern: '^(/[^\\s/?#%;\\\\]+)+$',
        expects: 'a path such as /v3/search',
      }),
      url: httpUrl('URL that matching requests are forwarded to.'),
      tls,
      host: Type.Optional(
        literals(HOSTS, { description: 'Their Host field; `upstream.host` where it is missing.' }),
      ),
    }),
    { formerly: 'others', expects: 'a list of upstreams, each with prefix and url' },
  ),
  pathProfile,
  connections: count(
    'Maximum number of connections to each upstream. Each carries one request at a time.',
    512,
  ),
  unauthenticatedPercent: percent(
    'Percentage of those connections, at least one, for requests that are not charged (OPTIONS, free operations). If all of these are in use, such a request gets a 503.',
    5,
  ),
  publicPercent: percent(
    'Percentage of those connections, at least one, for public operations. If all of these are in use, such a request gets a 503, before the charge where possible.',
    50,
  ),
  tunnelPercent: percent(
    'Percentage of those connections, rounded down, for WebSocket connections. It also limits the WebSocket connections in the shares of public operations and of requests that are not charged. If all of these are in use, a WebSocket request gets a 503, before the charge where possible.',
    50,
  ),
  maxWaiting: count(
    'Maximum number of requests that wait for their turn at each upstream. Above it, the payer with the most waiting requests gets a 503 for its newest. Public operations have `publicPercent` of this number in addition.',
    1_024,
  ),
  reservePercent: percent(
    'Percentage of `connections`, at least one, for payers that have less than their fair share of them.',
    10,
  ),
  concurrency: choice(
    '`adaptive`: the number of requests at each upstream follows its latency, and `connections` is the most. `fixed`: it is `connections`.',
    ['fixed', 'adaptive'],
  ),
  queueTimeoutMs: milliseconds('How long a request may wait for its turn. It then gets a 503.', 5_000),
  bodyBufferBytes: whole(
    'A request body of at most this length is read before its request waits for its turn, so that a slow client keeps no place at the upstream. Of a longer body with a `Content-Length`, this much is read first. Other bodies are streamed at once, and with 0 all are.',
    65_536,
    [0, 1_048_576],
  ),
  connectTimeoutMs: milliseconds('Timeout for connecting.', 5_000),
  headersTimeoutMs: milliseconds('Timeout for receiving the response headers.', 60_000),
  bodyTimeoutMs: milliseconds('Timeout between two reads of a response body.', 300_000),
  tunnelIdleTimeoutMs: milliseconds(
    'How long a WebSocket connection may carry no byte in either direction. Both of its sides are then closed.',
    300_000,
  ),
  // Node servers close idle connections after 5 s. Close them earlier, so that no request is sent on a closing connection.
  keepAliveTimeoutMs: milliseconds('How long an idle connection is kept open.', 4_000),
});
