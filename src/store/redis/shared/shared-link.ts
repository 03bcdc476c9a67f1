import { type StoreObserver, silentObserver } from '../../store-observer.ts';
import {
  type ConnectionEvents,
  openConnection,
  type RedisConnection,
} from '../connection/redis-connection.ts';
import type { RemoteStoreSettings } from '../connection/redis-options.ts';

/** The connection, as one of its users sees it. */
export interface LinkUse
  extends Pick<RedisConnection, 'client' | 'groupOf' | 'routeOf' | 'tried' | 'inOneWrite'> {
  /** Why Redis could not be reached since the connection was last ready. */
  problem(): string | undefined;
  /** The answer of a Redis that does not accept the credentials. */
  refusal(): string | undefined;
  close(): void;
}

/** A connection that several parts of a replica use. It is open while any of them does, and never queues a command. */
export class SharedLink {
  readonly #settings: RemoteStoreSettings;
  readonly #users = new Set<ConnectionEvents>();
  #link: RedisConnection | undefined;
  #problem: string | undefined;
  #refusal: string | undefined;

  constructor(settings: RemoteStoreSettings) {
    this.#settings = settings;
  }

  use({ ready, lost }: ConnectionEvents = { ready() {}, lost() {} }): LinkUse {
    const user = { ready, lost };
    this.#users.add(user);
    this.#link ??= this.#open();
    const { client, groupOf, routeOf, tried, inOneWrite } = this.#link;
    return {
      client,
      groupOf,
      routeOf,
      tried,
      inOneWrite,
      problem: () => this.#problem,
      refusal: () => this.#refusal,
      close: () => this.#leave(user),
    };
  }

  #open(): RedisConnection {
    const events: ConnectionEvents = {
      ready: () => {
        this.#problem = undefined;
        this.#refusal = undefined;
        for (const user of this.#users) user.ready();
      },
      lost: () => {
        for (const user of this.#users) user.lost();
      },
    };
    const observer: StoreObserver = {
      ...silentObserver,
      connectionFailed: (reason, message) => {
        this.#problem = message;
        this.#refusal = reason === 'auth' ? message : undefined;
      },
    };
    return openConnection(this.#settings, observer, events);
  }

  #leave(user: ConnectionEvents): void {
    if (!this.#users.delete(user) || this.#users.size > 0) return;
    this.#link?.close();
    this.#link = undefined;
  }
}
