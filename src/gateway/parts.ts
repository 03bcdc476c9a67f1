import type { Logger } from 'pino';
import type { Directory, IdentitySource } from '../identity/identity.ts';
import type { Store } from '../store/store.ts';
import type { Buckets } from './buckets.ts';
import type { ListenSettings } from './http/server.ts';
import type { PathProfile } from './normalise.ts';
import type { PriceList } from './operations.ts';
import type { Exchange } from './types.ts';
import type { UpstreamSettings } from './upstream/upstreams.ts';

/** What a gateway is made of. Price list, identities and limits may change while it runs; the rest may not. */
export interface GatewayParts {
  readonly baseUrl: string;
  readonly listen: ListenSettings;
  readonly upstream: UpstreamSettings & { readonly pathProfile: PathProfile };
  readonly prices: PriceList;
  readonly identities: IdentitySource;
  readonly directory: Directory;
  readonly buckets: Buckets;
  readonly store: Store;
  /** What to do with a request that the store could not count. */
  readonly onStoreFailure: 'serve' | 'reject';
  readonly observer: GatewayObserver;
  readonly log: Logger;
  /** Whether each request gets its line in the log. */
  readonly accessLog: boolean;
  /** Whether connections are to end with their next response. */
  isDraining(): boolean;
}

/** Who counts what the gateway does. */
export interface GatewayObserver {
  /** A response was sent in full, or its client went away. */
  requestFinished(exchange: Exchange, status: number, totalMs: number): void;
  unlistedOperation(method: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange | undefined;
  }
}

/** A gateway that is ready to listen; the store stays its owner's. */
export interface Gateway {
  /** @returns where clients connect, such as `http://127.0.0.1:8080` */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** Takes no further connections, lets requests under way finish for `graceMs`, then breaks off the rest. */
  close(graceMs: number): Promise<void>;
}
