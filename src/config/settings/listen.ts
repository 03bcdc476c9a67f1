import { Type } from 'typebox';
import { count, host, milliseconds, port, section } from './section.ts';

const bytes = (description: string, fallback: number, minimum: number) =>
  Type.Integer({ description, default: fallback, minimum });

/** Where clients connect, and how much of the gateway one client may take. */
export const listenSchema = section('Where clients connect, and what they may take.', {
  host: host('Address to listen on.', '0.0.0.0', 'WEIR_HOST'),
  port: port('Port to listen on; 0 takes a free one.', 8080, 'WEIR_PORT'),
  trustedProxies: Type.Array(
    Type.String({ pattern: '^[0-9A-Fa-f:.]+(/\\d{1,3})?$', expects: 'an address or a CIDR range' }),
    {
      description: 'Peers whose `X-Forwarded-*` and `Forwarded` are believed, as CIDR ranges.',
      default: [],
    },
  ),
  maxConnections: count('Connections at once; further ones are answered 503.', 10_000),
  maxHeaderBytes: bytes('Request line and header together; 431 above it.', 16_384, 1024),
  maxHeaderFields: count('Header fields of a request; 431 above it.', 128),
  maxBodyBytes: bytes('Longest request body; 413 above it.', 268_435_456, 0),
  headersTimeoutMs: milliseconds('How long a request header may take.', 10_000),
  bodyTimeoutMs: milliseconds('Longest silence within a request body; then 408.', 30_000),
  requestTimeoutMs: milliseconds('How long a whole request may take, body included.', 300_000),
  sendTimeoutMs: milliseconds(
    'How long a client may read nothing of its answer; then both sides close.',
    60_000,
  ),
  keepAliveTimeoutMs: milliseconds('How long an idle connection is kept.', 72_000),
  maxEventLoopDelayMs: milliseconds('Mean delay above which requests are answered 503; 0: never.', 1_000, 0),
});
