import { Type } from 'typebox';
import { addressRanges, count, filePath, host, milliseconds, port, section, serverTls } from './section.ts';

const bytes = (description: string, fallback: number, minimum: number) =>
  Type.Integer({ description, default: fallback, minimum });

/** The port for clients, and the limits on their connections and requests. */
export const listenSchema = section(
  'The port for clients, and the limits on their connections and requests.',
  {
    host: host('Address to listen on.', '0.0.0.0', 'WEIR_HOST'),
    port: port('Port to listen on. 0 selects a free port.', 8080, 'WEIR_PORT'),
    tls: Type.Optional(
      Type.Object(
        {
          ...serverTls,
          clientCaFile: Type.Optional(
            filePath(
              'Authorities of client certificates. Clients without one are refused; the upstream gets the subject.',
            ),
          ),
        },
        {
          description: 'Serve HTTPS. The files are followed while Weir runs.',
          additionalProperties: false,
        },
      ),
    ),
    trustedProxies: addressRanges(
      'Proxies whose `X-Forwarded-*` and `Forwarded` headers are trusted: addresses or CIDR ranges.',
      [],
    ),
    maxConnections: count('Maximum number of open connections. Further connections get a 503.', 10_000),
    maxHeaderBytes: bytes(
      'Maximum size of request line and headers. Larger requests get a 431.',
      16_384,
      1024,
    ),
    maxHeaderFields: count('Maximum number of header fields. Requests with more get a 431.', 128),
    maxBodyBytes: bytes('Maximum size of a request body. Larger requests get a 413.', 268_435_456, 0),
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
    maxEventLoopDelayMs: milliseconds(
      'Mean event loop delay above which requests get a 503. 0 turns this off.',
      1_000,
      0,
    ),
  },
);
