/** The connections to the services behind the gateway. */

import type { Traffic } from '../../domain/operation.ts';
import { type TlsFiles, tlsOptions } from '../../domain/tls-files.ts';
import { Pool } from '../../http/client/pool.ts';
import type { TrustedProxies } from '../../http/message/fields/forwarded.ts';
import { UpstreamAddresses } from './upstream-addresses.ts';

interface TlsSettings extends TlsFiles {
  readonly verify: boolean;
}

interface Place {
  /** `http://host:port` or `https://host:port`, with a base path where it has one. */
  readonly url: string;
  readonly tls?: TlsSettings;
  readonly host?: HostField;
}

/** Which Host field an upstream receives: the host of its own URL, or the client's. */
type HostField = 'upstream' | 'preserve';

export interface UpstreamSettings extends Place, ShareSettings {
  readonly host: HostField;
  readonly routes: readonly (Place & { readonly prefix: string })[];
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly tunnelIdleTimeoutMs: number;
}

/** One service, and how busy it is. */
export class Upstream {
  readonly prefix: string;
  readonly pool: Pool;
  /** Such as `http://127.0.0.1:3000`. */
  readonly origin: string;
  /** Path of the upstream's URL, put before every canonical path; empty for none. */
  readonly basePath: string;
  /** Whether requests carry the Host field that the client sent. */
  readonly preservesHost: boolean;
  readonly addresses: UpstreamAddresses;
  readonly shares: Shares;
  /** How long a tunnel may carry nothing. */
  readonly tunnelIdleTimeoutMs: number;

  constructor(
    prefix: string,
    { url, tls, host }: Place,
    settings: UpstreamSettings,
    trusted: TrustedProxies,
  ) {
    const origin = new URL(url);
    this.prefix = prefix;
    this.origin = origin.origin;
    this.basePath = origin.pathname.replace(/\/$/, '');
    this.preservesHost = (host ?? settings.host) === 'preserve';
    this.addresses = new UpstreamAddresses(origin, this.basePath, trusted);
    this.shares = new Shares(settings);
    this.tunnelIdleTimeoutMs = settings.tunnelIdleTimeoutMs;
    this.pool = new Pool(origin, settings, tls && { verify: tls.verify, ...tlsOptions(tls) });
  }
}

/** Every upstream, found by path. */
export class Upstreams {
  readonly #byPrefix: readonly Upstream[];
  readonly #main: Upstream;

  /** @throws Error when a certificate file cannot be read */
  constructor(settings: UpstreamSettings, trusted: TrustedProxies) {
    this.#main = new Upstream('', settings, settings, trusted);
    this.#byPrefix = settings.routes
      .map((place) => new Upstream(place.prefix, place, settings, trusted))
      .sort((a, b) => b.prefix.length - a.prefix.length);
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
    for (const { pool } of [this.#main, ...this.#byPrefix]) pool.destroy();
  }
}

export interface ShareSettings {
  readonly connections: number;
  readonly maxWaiting: number;
  readonly publicPercent: number;
  readonly unauthenticatedPercent: number;
  readonly tunnelPercent: number;
}

/** Counts what is under way at one upstream. A tunnel counts twice: as a request until it closes, and among the tunnels. */
export class Shares {
  readonly #maxAtOnce: Readonly<Record<Traffic, number>>;
  /** For callers: of all tunnels. */
  readonly #maxTunnels: Readonly<Record<Traffic, number>>;
  readonly #atOnce: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };
  readonly #tunnels: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };

  constructor(settings: ShareSettings) {
    const { connections, maxWaiting, tunnelPercent } = settings;
    const share = (percent: number) => Math.max(1, Math.floor((connections * percent) / 100));
    const open = share(settings.publicPercent);
    const uncharged = share(settings.unauthenticatedPercent);
    // Rounded down: below 100 %, tunnels leave a connection to the requests of every share.
    const tunnelsOf = (places: number) => Math.floor((places * tunnelPercent) / 100);
    this.#maxAtOnce = { caller: connections + maxWaiting, public: open, uncharged };
    this.#maxTunnels = {
      caller: tunnelsOf(connections),
      public: tunnelsOf(open),
      uncharged: tunnelsOf(uncharged),
    };
  }

  /** False when the connections are busy and enough requests wait for one. */
  get hasRoom(): boolean {
    return total(this.#atOnce) < this.#maxAtOnce.caller;
  }

  /** False when such requests use their whole share of the connections. Requests of callers have no share of their own. */
  hasRoomFor(traffic: Traffic): boolean {
    return traffic === 'caller' || this.#atOnce[traffic] < this.#maxAtOnce[traffic];
  }

  /** False when tunnels use their whole share of the connections, or when tunnels of this traffic use the share of this traffic. */
  hasRoomForTunnel(traffic: Traffic = 'caller'): boolean {
    if (total(this.#tunnels) >= this.#maxTunnels.caller) return false;
    return traffic === 'caller' || this.#tunnels[traffic] < this.#maxTunnels[traffic];
  }

  /** Counts a request that is dispatched, until `leave`. */
  enter(traffic: Traffic, isTunnel: boolean): void {
    this.#atOnce[traffic]++;
    if (isTunnel) this.#tunnels[traffic]++;
  }

  /** Counts out a request that was answered in full, or failed, or whose tunnel has closed. */
  leave(traffic: Traffic, isTunnel: boolean): void {
    this.#atOnce[traffic]--;
    if (isTunnel) this.#tunnels[traffic]--;
  }
}

function total({ caller, public: open, uncharged }: Readonly<Record<Traffic, number>>): number {
  return caller + open + uncharged;
}
