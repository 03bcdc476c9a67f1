import type { Traffic } from '../../domain/operation.ts';

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

  /** False when such requests use their whole share of the connections. Those of callers have no share of their own. */
  hasRoomFor(traffic: Traffic): boolean {
    return traffic === 'caller' || this.#atOnce[traffic] < this.#maxAtOnce[traffic];
  }

  /** False when tunnels use their whole share of the connections, or those of such traffic theirs. */
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
