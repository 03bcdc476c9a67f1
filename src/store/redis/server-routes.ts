import { Breaker } from '../dispatch/breaker.ts';
import type { UncountedReason } from '../store.ts';
import type { StoreObserver } from '../store-observer.ts';

/** One server: its breaker, and what its probes charge. */
export interface ServerRoute {
  readonly breaker: Breaker;
  /** The group of the last call, and a key in it: the slots of a Cluster move between servers. */
  group: number;
  key: string;
}

/** The servers that calls have gone to, by name. */
export class ServerRoutes {
  readonly #observer: StoreObserver;
  readonly #probe: (route: ServerRoute) => Promise<UncountedReason | undefined>;
  readonly #recovered: () => void;
  readonly #byName = new Map<string, ServerRoute>();

  /**
   * @param probe makes one call; resolves to the reason why it failed, or undefined if it succeeded
   * @param recovered called when a server answers again after its breaker was open
   */
  constructor(
    observer: StoreObserver,
    probe: (route: ServerRoute) => Promise<UncountedReason | undefined>,
    recovered: () => void,
  ) {
    this.#observer = observer;
    this.#probe = probe;
    this.#recovered = recovered;
  }

  /** The server with this name, if a call has gone to it. */
  find(name: string): ServerRoute | undefined {
    return this.#byName.get(name);
  }

  /** The server that a call of this group goes to. */
  use(name: string, group: number, key: string): ServerRoute {
    const known = this.#byName.get(name);
    if (known !== undefined) {
      known.group = group;
      known.key = key;
      return known;
    }
    const breaker = new Breaker(
      () => this.#probe(route),
      (state) => {
        this.#observer.breakerChanged(name, state);
        if (state === 'closed') this.#recovered();
      },
    );
    const route: ServerRoute = { breaker, group, key };
    this.#byName.set(name, route);
    this.#observer.breakerChanged(name, 'closed');
    return route;
  }

  probeSoon(): void {
    for (const { breaker } of this.#byName.values()) breaker.probeSoon();
  }

  close(): void {
    for (const { breaker } of this.#byName.values()) breaker.close();
  }
}
