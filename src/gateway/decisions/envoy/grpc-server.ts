/** The port of Envoy's rate limit service: gRPC over HTTP/2, for trusted peers alone. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { type handleUnaryCall, Server, ServerCredentials, status } from '@grpc/grpc-js';
import type { Logger } from 'pino';
import { isLate, withinMs } from '../../../domain/awaitable.ts';
import { hostInUrl } from '../../../domain/network.ts';
import { Peer, TrustedProxies } from '../../../http/message/fields/forwarded.ts';
import type { Gateway } from '../../dependencies.ts';
import type { HeaderForm } from './envoy-answer.ts';
import {
  HEALTH_SERVICE,
  RATE_LIMIT_SERVICE,
  type RateLimitRequest,
  type RateLimitResponse,
} from './messages.ts';
import { type CallError, type EnvoyDependencies, RateLimitService } from './service.ts';

/** A request with the most descriptors takes some kilobytes; a value is a header or a path. */
const MAX_MESSAGE_BYTES = 65_536;
/** Each asks for one decision. Envoy opens another connection when it has more. */
const MAX_STREAMS = 1_000;
const MAX_SESSION_MB = 10;
/** A peer that answers no ping has gone, or does not speak HTTP/2. */
const PING_AFTER_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;

const OPTIONS = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_concurrent_streams': MAX_STREAMS,
  'grpc-node.max_session_memory': MAX_SESSION_MB,
  'grpc.keepalive_time_ms': PING_AFTER_MS,
  'grpc.keepalive_timeout_ms': PING_TIMEOUT_MS,
  // Statistics for debugging, which cost a tenth of a decision.
  'grpc.enable_channelz': 0,
};

const FAILED = { code: status.INTERNAL, details: 'The decision failed.' };

/**
 * Creates the server. Connections of peers that are not trusted are closed at once.
 *
 * @param trustedProxies addresses or CIDR ranges of the proxies that may ask
 */
export function createEnvoyServer(
  dependencies: EnvoyDependencies,
  trustedProxies: readonly string[],
  headers: HeaderForm,
  keyPrefix: string,
): Gateway {
  const { log, listen, tls, isDraining } = dependencies;
  const grpc = new Server(OPTIONS);
  grpc.addService(RATE_LIMIT_SERVICE, {
    shouldRateLimit: callOf(new RateLimitService(dependencies, headers, keyPrefix), log),
  });
  grpc.addService(HEALTH_SERVICE, {
    check: ((_, answer) => answer(null, { status: isDraining() ? 2 : 1 })) as handleUnaryCall<
      unknown,
      { readonly status: 1 | 2 }
    >,
  });
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const trusted = new TrustedProxies(trustedProxies);
  const server = tls === undefined ? createServer() : tls.createRawServer('h2', listen.headersTimeoutMs);
  server.maxConnections = listen.maxConnections;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    if (!trusted.has(new Peer(socket))) socket.destroy();
    else if (tls === undefined) injector.injectConnection(socket);
  });
  server.on('secureConnection', (socket: Socket) => injector.injectConnection(socket));
  return {
    listen: async ({ host, port }) => {
      server.listen(port, host);
      await once(server, 'listening');
      return urlOf(server, host, tls !== undefined);
    },
    async close(graceMs) {
      if (server.listening) server.close();
      const finished = new Promise<void>((resolve) => grpc.tryShutdown(() => resolve()));
      injector.drain(graceMs);
      // The library waits for calls that their peer never ends, and for sessions that never began.
      await withinMs(finished, graceMs);
      for (const socket of sockets) socket.destroy();
      grpc.forceShutdown();
    },
  };
}

function callOf(
  service: RateLimitService,
  log: Logger,
): handleUnaryCall<RateLimitRequest, RateLimitResponse> {
  return ({ request }, answer) => {
    const failed = (error: unknown) => {
      log.error({ err: error }, 'a decision failed');
      answer(FAILED);
    };
    const decided = (answered: RateLimitResponse | CallError) => {
      if ('code' in answered) answer(answered);
      else answer(null, answered);
    };
    try {
      const deciding = service.decide(request);
      if (isLate(deciding)) deciding.then(decided).then(() => undefined, failed);
      else decided(deciding);
    } catch (error) {
      failed(error);
    }
  };
}

function urlOf(server: NetServer, host: string, isEncrypted: boolean): string {
  const { port } = server.address() as AddressInfo;
  return `${isEncrypted ? 'https' : 'http'}://${hostInUrl(host)}:${port}`;
}
