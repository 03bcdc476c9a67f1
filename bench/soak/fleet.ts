import { on, once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { freePort } from '../../test/fixtures/free-port.ts';
import { identities, limitsOf, MAIN, OPENAPI } from '../contestants/weir.ts';
import { type Program, startProgram } from '../lab/program.ts';
import type { Limits } from '../load/two-buckets.ts';
import { COST_PATH, SLOW_PATH } from '../load/upstream.ts';
import { type Entry, type Slot, startEntry } from './entry.ts';

/** One replica stays for the whole run; the other two are replaced at every deploy, which needs a spare slot. */
const SLOTS = ['stays', 'a', 'b', 'c'];
export const ACCOUNTS = 200_000;
export const BUSIEST_ORGANIZATION = 'org_9';
const DRAIN_SECONDS = 3;
const STOP_MS = 60_000;

export interface Replica {
  readonly slot: Slot;
  readonly program: Program;
}

/** What the replicas share. */
export interface Shared {
  readonly upstreamPort: number;
  readonly store: object;
  readonly journalUrl: string;
}

/** Of which a month counts in the journal; an Account may have few slow answers at a time. */
const FURTHER_LIMITS = {
  'organization-month': { per: 'organization', points: 1_000_000_000, period: 'month' },
  'account-in-flight': { per: 'account', concurrent: 10, operations: [`GET ${SLOW_PATH}`] },
};
/** Charged as five points before the upstream says what it has cost. */
const OPERATIONS = [
  { method: 'GET', path: COST_PATH, cost: 5, settle: { header: 'x-cost' } },
  { method: 'GET', path: SLOW_PATH },
];

/** Three replicas of Weir behind one entry, which share a Redis. */
export class Fleet {
  readonly entry: Entry;
  readonly #folder: string;
  readonly #slots: readonly Slot[];
  readonly #inspectorPort: number;
  /** The first one stays, the others are replaced oldest first. */
  #replicas: readonly Replica[] = [];

  private constructor(folder: string, slots: readonly Slot[], entry: Entry, inspectorPort: number) {
    this.#folder = folder;
    this.#slots = slots;
    this.#inspectorPort = inspectorPort;
    this.entry = entry;
  }

  static async start(folder: string, shared: Shared, limits: Limits): Promise<Fleet> {
    const slots: Slot[] = [];
    for (const name of SLOTS) slots.push({ name, port: await freePort(), adminPort: await freePort() });
    writeFileSync(join(folder, 'identities.yaml'), JSON.stringify(identities(ACCOUNTS)));
    writeLimits(folder, limits);
    for (const slot of slots) writeSettings(folder, slot, shared);
    const fleet = new Fleet(folder, slots, await startEntry(folder, slots), await freePort());
    for (const slot of slots.slice(0, -1)) await fleet.#add(slot);
    return fleet;
  }

  get replicas(): readonly Replica[] {
    return this.#replicas;
  }

  /** Replaces all replicas but the first, one by one: a new one takes requests before an old one gets SIGTERM. */
  async deploy(): Promise<void> {
    for (const old of this.#replicas.slice(1)) {
      const spare = this.#slots.find((slot) => !this.#replicas.some((replica) => replica.slot === slot));
      if (spare === undefined) throw new Error('no slot is free');
      await this.#add(spare);
      this.#replicas = this.#replicas.filter((replica) => replica !== old);
      await old.program.stop(STOP_MS);
    }
  }

  /** Ends the newest replica by SIGKILL, and starts another in its place once the entry has noticed. */
  async kill(): Promise<void> {
    const [killed] = this.#replicas.slice(-1);
    if (killed === undefined) throw new Error('no replica runs');
    process.kill(killed.program.pid, 'SIGKILL');
    this.#replicas = this.#replicas.slice(0, -1);
    await this.entry.untilServing(this.#replicas.map(({ slot }) => slot));
    await this.#add(killed.slot);
  }

  /** Changes the limits file, and waits until every replica has the new limits in force. */
  async changeLimits(limits: Limits): Promise<void> {
    const before = await this.#versions();
    writeLimits(this.#folder, limits);
    for (;;) {
      const now = await this.#versions();
      if (new Set(now).size === 1 && now[0] !== before[0]) return;
      await setTimeout(100);
    }
  }

  /** Collects the garbage of the replica that stays. @returns the bytes in its heap then */
  async heapBytes(): Promise<number> {
    const targets = await fetch(`http://127.0.0.1:${this.#inspectorPort}/json/list`);
    const [target] = (await targets.json()) as readonly { readonly webSocketDebuggerUrl: string }[];
    if (target === undefined) throw new Error('the replica that stays has no inspector');
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    const call = async (id: number, method: string) => {
      socket.send(JSON.stringify({ id, method }));
      for await (const [data] of on(socket, 'message')) {
        const answer = JSON.parse(`${data}`);
        if (answer.id === id) return answer.result;
      }
    };
    try {
      await once(socket, 'open');
      await call(1, 'HeapProfiler.collectGarbage');
      return (await call(2, 'Runtime.getHeapUsage')).usedSize;
    } finally {
      socket.close();
    }
  }

  /** What each replica's admin port answers. */
  ask(path: string): Promise<string[]> {
    return Promise.all(
      this.#replicas.map(async ({ slot }) =>
        (await fetch(`http://127.0.0.1:${slot.adminPort}${path}`)).text(),
      ),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#replicas.map(({ program }) => program.stop(STOP_MS)));
    await this.entry.stop();
  }

  async #add(slot: Slot): Promise<void> {
    const inspector = slot.name === SLOTS[0] ? [`--inspect=127.0.0.1:${this.#inspectorPort}`] : [];
    const args = [...inspector, MAIN, 'start', '-c', join(this.#folder, `${slot.name}.yaml`)];
    const program = await startProgram({
      command: process.execPath,
      args,
      cores: undefined,
      port: slot.port,
      env: { NODE_ENV: 'production' },
      hasOwnSession: true,
    });
    this.#replicas = [...this.#replicas, { slot, program }];
    await this.entry.untilServing(this.#replicas.map((replica) => replica.slot));
  }

  /** The version of the limits in force at each replica. */
  async #versions(): Promise<string[]> {
    const all = await this.ask('/metrics');
    return all.map((metrics) => /weir_limits_info\{sha="([^"]+)"/.exec(metrics)?.[1] ?? 'none');
  }
}

function writeLimits(folder: string, { account, organization }: Limits): void {
  const file = join(folder, 'limits.yaml');
  writeFileSync(
    `${file}.new`,
    JSON.stringify({
      windowSeconds: 1,
      defaults: limitsOf(account, organization),
      limits: FURTHER_LIMITS,
    }),
  );
  renameSync(`${file}.new`, file);
}

function writeSettings(
  folder: string,
  { name, port, adminPort }: Slot,
  { upstreamPort, store, journalUrl }: Shared,
): void {
  const settings = {
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
    upstream: { url: `http://127.0.0.1:${upstreamPort}` },
    store,
    journal: { url: journalUrl },
    operations: { openapi: OPENAPI, list: OPERATIONS },
    log: { access: true, level: 'info' },
    shutdown: { drainDelaySeconds: DRAIN_SECONDS },
  };
  writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(settings));
}
