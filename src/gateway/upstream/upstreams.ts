/** The connections to the services behind the gateway. */

import { type TlsFiles, tlsOptions } from '../../domain/connections/tls-files.ts';
import { Pool } from '../../http/client/pool.ts';
import type { TimeLimits } from '../../http/client/request.ts';
import type { TrustedProxies } from '../../http/message/fields/forwarded.ts';
import type { PresentPayer, UpstreamQueue, WaitingPayer } from '../../observe/gateway-observer.ts';
import { AwaitedBodies } from './awaited-bodies.ts';
import { StalledUploads } from './stalled-uploads.ts';
import { AdaptiveLimit } from './turns/adaptive-limit.ts';
import type { TurnSettings } from './turns/guest.ts';
import { Turns, type Visit } from './turns/turns.ts';
import { UpstreamAddresses } from './upstream-addresses.ts';

type UpstreamTls = TlsFiles & { readonly verify: boolean };

interface Place {
  /** `http://host:port` or `https://host:port`, with a base path where it has one. */
  readonly url: string;
  readonly tls?: UpstreamTls;
  /** Which Host field it receives: the host of its own URL, or the client's. */
  readonly host?: 'upstream' | 'preserve';
}

export interface UpstreamSettings extends Place, TurnSettings, TimeLimits {
  readonly host: NonNullable<Place['host']>;
  readonly routes: readonly (Place & { readonly prefix: string })[];
  /** The longest body, and the longest beginning of one, that is read before its request asks for a turn. */
  readonly bodyBufferBytes: number;
  readonly tunnelIdleTimeoutMs: number;
}

/** One service, and how busy it is. */
export class Upstream implements UpstreamQueue {
  readonly prefix: string;
  readonly pool: Pool;
  /** Its TLS; undefined if it has no settings of its own. */
  readonly tls: UpstreamTls | undefined;
  /** Such as `http://127.0.0.1:3000`. */
  readonly origin: string;
  /** Path of the upstream's URL, put before every canonical path; empty for none. */
  readonly basePath: string;
  /** Whether requests carry the Host field that the client sent. */
  readonly preservesHost: boolean;
  readonly addresses: UpstreamAddresses;
  /** Who may use it next. */
  readonly turns: Turns;
  /** Its requests whose bodies are streamed. */
  readonly uploads: StalledUploads;
  /** How long a tunnel may carry nothing. */
  readonly tunnelIdleTimeoutMs: number;
  /** Undefined if the number of places is fixed. */
  readonly #adaptive: AdaptiveLimit | undefined;

  constructor(
    prefix: string,
    { url, tls, host }: Place,
    settings: UpstreamSettings,
    trusted: TrustedProxies,
  ) {
    const origin = new URL(url);
    this.prefix = prefix;
    this.tls = tls;
    this.origin = origin.origin;
    this.basePath = origin.pathname.replace(/\/$/, '');
    this.preservesHost = (host ?? settings.host) === 'preserve';
    this.addresses = new UpstreamAddresses(origin, this.basePath, trusted);
    this.turns = new Turns(settings);
    if (settings.concurrency === 'adaptive') {
      this.#adaptive = new AdaptiveLimit(settings.connections);
      this.turns.limitTo(this.#adaptive.limit);
    }
    this.uploads = new StalledUploads(this.turns);
    this.tunnelIdleTimeoutMs = settings.tunnelIdleTimeoutMs;
    this.pool = new Pool(origin, settings, tls && { verify: tls.verify, ...tlsOptions(tls) });
  }

  /** Takes a response to a request whose body was sent with its head, or its time-out: the number of places follows the latency. */
  noteLatency(sentMs: number, nowMs: number): void {
    if (this.#adaptive?.note(sentMs, nowMs, this.turns.unanswered)) this.turns.limitTo(this.#adaptive.limit);
  }

  /** Takes the beginning of a response: the latency ends here, and so does its part in the limit that follows the latency. */
  noteAnswered(visit: Visit): void {
    if (this.#adaptive !== undefined) this.turns.noteAnswered(visit);
  }

  get waiting(): number {
    return this.turns.waiting;
  }

  get present(): number {
    return this.turns.present;
  }

  get limit(): number {
    return this.turns.limit;
  }

  waitingPayers(most: number): readonly WaitingPayer[] {
    return this.turns.waitingPayers(most);
  }

  presentPayers(most: number): readonly PresentPayer[] {
    return this.turns.presentPayers(most);
  }
}

/** Every upstream, found by path. */
export class Upstreams {
  readonly bodies: AwaitedBodies;
  readonly #byPrefix: readonly Upstream[];
  readonly #main: Upstream;

  /** @throws Error when a certificate file cannot be read */
  constructor(settings: UpstreamSettings, trusted: TrustedProxies) {
    this.bodies = new AwaitedBodies(settings.bodyBufferBytes);
    this.#main = new Upstream('', settings, settings, trusted);
    this.#byPrefix = settings.routes
      .map((place) => new Upstream(place.prefix, place, settings, trusted))
      .sort((a, b) => b.prefix.length - a.prefix.length);
  }

  get all(): readonly Upstream[] {
    return [this.#main, ...this.#byPrefix];
  }

  /** The upstream with the longest prefix that the path is at or below; whole segments only. */
  find(path: string): Upstream {
    for (const upstream of this.#byPrefix) {
      const { prefix } = upstream;
      if (path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/')) {
        return upstream;
      }
    }
    return this.#main;
  }

  /** Closes every connection, and with them what is under way. */
  destroy(): void {
    for (const { pool, turns } of this.all) {
      turns.close();
      pool.destroy();
    }
  }
}
