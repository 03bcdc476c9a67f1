/** The connections to the services behind the gateway. */
import { type TlsFiles, tlsOptions } from '../../domain/tls-files.ts';
import type { TrustedProxies } from '../http/forwarded.ts';
import { Pool } from './http1/pool.ts';
import { References } from './references.ts';

interface TlsSettings extends TlsFiles {
  readonly verify: boolean;
}

interface Place {
  /** `http://host:port` or `https://host:port`, with a base path where it has one. */
  readonly url: string;
  readonly tls?: TlsSettings;
  readonly host?: HostField;
}

/** Which Host field an upstream receives: that of its own URL, or the client's. */
type HostField = 'upstream' | 'preserve';

export interface UpstreamSettings extends Place {
  readonly host: HostField;
  readonly routes: readonly (Place & { readonly prefix: string })[];
  readonly connections: number;
  readonly unauthenticatedPercent: number;
  readonly publicPercent: number;
  readonly maxWaiting: number;
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/**
 * How requests share an upstream: those of callers may use all of it, those of public operations and those that are not charged
 * (OPTIONS, free operations) a part each.
 */
export type Traffic = 'caller' | 'public' | 'uncharged';

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
  readonly references: References;
  readonly #maxAtOnce: Readonly<Record<Traffic, number>>;
  readonly #atOnce: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };

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
    this.references = new References(origin, this.basePath, trusted);
    const { connections, maxWaiting, publicPercent, unauthenticatedPercent } = settings;
    const share = (percent: number) => Math.max(1, Math.floor((connections * percent) / 100));
    this.#maxAtOnce = {
      caller: connections + maxWaiting,
      public: share(publicPercent),
      uncharged: share(unauthenticatedPercent),
    };
    this.pool = new Pool(origin, settings, tls && { verify: tls.verify, ...tlsOptions(tls) });
  }

  /** False when its sockets are busy and enough requests wait for one. */
  get hasRoom(): boolean {
    const { caller, public: open, uncharged } = this.#atOnce;
    return caller + open + uncharged < this.#maxAtOnce.caller;
  }

  /** False when such requests use their whole share of the sockets. */
  hasRoomFor(traffic: Exclude<Traffic, 'caller'>): boolean {
    return this.#atOnce[traffic] < this.#maxAtOnce[traffic];
  }

  /** Counts a request that is dispatched, until `leave`. */
  enter(traffic: Traffic): void {
    this.#atOnce[traffic]++;
  }

  /** Counts out a request that was answered in full, or failed. */
  leave(traffic: Traffic): void {
    this.#atOnce[traffic]--;
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
