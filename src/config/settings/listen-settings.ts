import { Type } from 'typebox';
import {
  address,
  addressRanges,
  choice,
  clientCa,
  count,
  milliseconds,
  section,
  serverTls,
  whole,
} from './section.ts';

const MAX_BYTES = 1_000_000_000_000;

const { host } = address('0.0.0.0', 8080, 'WEIR');

/** The port for clients, and the limits on their connections and requests. */
export const listenSchema = section(
  'The port for clients, and the limits on their connections and requests.',
  {
    host,
    port: Type.Union([Type.Integer({ minimum: 0, maximum: 65_535 }), Type.Literal('off')], {
      description:
        'Port to listen on. 0 selects a free port. `off`, or `listen: off`: there is no port for clients, and no upstream. Weir only decides for other proxies.',
      default: 8080,
      env: 'WEIR_PORT',
      expects: 'a whole number from 0 to 65535, or off',
    }),
    tls: serverTls(clientCa('Clients without one are refused; the upstream gets the subject.')),
    trustedProxies: addressRanges(
      'Proxies whose `X-Forwarded-*` headers are trusted, and whose `Forwarded` is passed on: addresses or CIDR ranges.',
      [],
    ),
    maxConnections: count('Maximum number of open connections. Further connections get a 503.', 10_000),
    maxHeaderBytes: count(
      'Maximum size of request line and headers. Larger requests get a 431.',
      16_384,
      1024,
    ),
    maxHeaderFields: count(
      'Maximum number of header fields, of trailers, and of names in `Connection`. Requests with more get a 431.',
      128,
    ),
    maxBodyBytes: whole('Maximum size of a request body. Larger requests get a 413.', 268_435_456, [
      0,
      MAX_BYTES,
    ]),
    headersTimeoutMs: milliseconds('Timeout for receiving the request headers.', 10_000),
    bodyTimeoutMs: milliseconds(
      'Timeout between two reads of a request body. The request then gets a 408.',
      30_000,
    ),
    requestTimeoutMs: milliseconds('Timeout for receiving a whole request, including its body.', 300_000),
    sendTimeoutMs: milliseconds(
      'How long a client may stop reading its response. Both connections are then closed.',
      60_000,
    ),
    keepAliveTimeoutMs: milliseconds('How long an idle connection is kept open.', 72_000),
    halfClose: choice(
      'What a client that closes its sending side before it has its response means: `abort`, that it has gone, `serve`, that it waits for the response.',
      ['abort', 'serve'],
    ),
    maxEventLoopDelayMs: milliseconds(
      'Mean event loop delay above which requests get a 503, if it lasts for two seconds. Time in which the process was stopped does not count. 0 turns this off.',
      1_000,
      0,
    ),
  },
  { offBy: 'port', expects: 'a mapping, or off' },
);
