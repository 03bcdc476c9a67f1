import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type RedisServer, startRedisServer } from '../../fixtures/redis-server.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';
import { CountingUpstream, type Excess } from './counting-upstream.ts';
import { type Outcome, sendRandom } from './random-client.ts';

export const LIMIT = 8;
const ACCOUNTS = 4;
/** Three times the limit of each Account. */
const CLIENTS = 3 * LIMIT;
/** How long the upstream takes at most. */
const LONGEST_MS = 60;
const GATEWAYS = 3;

/** Beside other programs, an answer of Redis may take long; without one in time, a request is served without a slot. */
const DEADLINE_MS = 5_000;
/** Slots are free three seconds after the last request, and on a busy machine somewhat later. */
export const FREE_WITHIN_MS = 10_000;
/** The lease, the slowest request, and a renewal. */
const EXCEPTION_MS = 6_000;

const FAULTS = ['kill', 'pause', 'freeze', 'redis'] as const;

export type Fault = (typeof FAULTS)[number];

/** A time in which the README allows more than the limit. */
export interface Exception {
  readonly fault: Fault;
  readonly fromMs: number;
  toMs: number;
}

export interface RigResult {
  readonly requests: number;
  readonly atUpstream: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  readonly faults: Readonly<Record<Fault, number>>;
  /** The most in flight for one Account outside of the exceptions, and in the exceptions of each fault. */
  readonly most: number;
  readonly excesses: readonly Excess[];
  readonly excepted: Readonly<Partial<Record<Fault, number>>>;
  /** Until every slot of every Account could be taken again, after the last request had ended. */
  readonly freeAfterMs: number;
}

interface Plan {
  /** Requests to send at least. */
  readonly requests: number;
  /** Time from one fault to the next. */
  readonly everyMs: number;
  /** By default all, in turn. */
  readonly faults?: readonly Fault[];
  progress?(sent: number): void;
}

/** Three gateways on one Redis, in front of an upstream that counts, while clients leave and everything else fails. */
export class Rig {
  readonly #upstream: CountingUpstream;
  readonly #redis: RedisServer;
  #gateways: WeirProcess[] = [];
  readonly #exceptions: Exception[] = [];
  readonly #outcomes: Record<Outcome, number> = {};
  readonly #faults: Record<Fault, number> = { kill: 0, pause: 0, freeze: 0, redis: 0 };
  #sent = 0;
  #isOver = false;

  private constructor(upstream: CountingUpstream, redis: RedisServer) {
    this.#upstream = upstream;
    this.#redis = redis;
  }

  static async start(): Promise<Rig> {
    const rig = new Rig(await CountingUpstream.start(LIMIT), await startRedisServer());
    rig.#gateways = await Promise.all(Array.from({ length: GATEWAYS }, () => rig.#startGateway()));
    return rig;
  }

  async run(plan: Plan): Promise<RigResult> {
    const clients = Array.from({ length: ACCOUNTS * CLIENTS }, (_, index) =>
      this.#client(index % ACCOUNTS, plan),
    );
    const breaking = this.#break(plan);
    await Promise.all(clients);
    this.#isOver = true;
    await breaking;
    const endedMs = performance.now();
    for (let account = 0; account < ACCOUNTS; account++)
      await this.#untilFree(account, endedMs + FREE_WITHIN_MS);
    const freeAfterMs = performance.now() - endedMs;
    const { excesses, requests, most } = this.#upstream;
    const isExcepted = ({ atMs }: Excess) => this.#exceptionAt(atMs) !== undefined;
    const excepted: Partial<Record<Fault, number>> = {};
    for (const { atMs, inFlight } of excesses) {
      const fault = this.#exceptionAt(atMs)?.fault;
      if (fault !== undefined) excepted[fault] = Math.max(excepted[fault] ?? 0, inFlight);
    }
    const wrong = excesses.filter((one) => !isExcepted(one));
    return {
      requests: this.#sent,
      atUpstream: requests,
      outcomes: this.#outcomes,
      faults: this.#faults,
      most: Math.max(Math.min(most, LIMIT), ...wrong.map(({ inFlight }) => inFlight)),
      excesses: wrong,
      excepted,
      freeAfterMs,
    };
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#gateways.map((gateway) => gateway.close()));
    await this.#upstream.close();
    await this.#redis.stop();
  }

  #startGateway(): Promise<WeirProcess> {
    const accounts = Array.from({ length: ACCOUNTS }, (_, index) => index);
    return startWeir({
      upstreamUrl: this.#upstream.url,
      store: { kind: 'redis', url: this.#redis.url, keyPrefix: 'rig', deadlineMs: DEADLINE_MS },
      settings: {
        log: { level: 'info', access: false },
        operations: { unlisted: 'charge', list: [] },
        upstream: {
          url: this.#upstream.url,
          headersTimeoutMs: 1_000,
          bodyTimeoutMs: 2_000,
          tunnelPercent: 100,
          connections: 200,
        },
        shutdown: { drainDelaySeconds: 0, graceSeconds: 1 },
      },
      limits: {
        defaults: Object.fromEntries(
          ['account', 'organization'].flatMap((scope) => [
            [`${scope}-read`, 1_000_000],
            [`${scope}-write`, 1_000_000],
          ]),
        ),
        limits: { 'in-flight': { per: 'account', concurrent: LIMIT } },
      },
      identities: {
        tokens: Object.fromEntries(accounts.map((index) => [`token${index}`, `svc_${index}`])),
        principals: Object.fromEntries(
          accounts.map((index) => [`svc_${index}`, { type: 'ServiceAccount', account: `acct_${index}` }]),
        ),
        accounts: Object.fromEntries(accounts.map((index) => [`acct_${index}`, {}])),
      },
    });
  }

  async #client(account: number, { requests, progress }: Plan): Promise<void> {
    while (this.#sent < requests) {
      this.#sent += 1;
      if (this.#sent % 10_000 === 0) progress?.(this.#sent);
      const outcome = await this.#send(account);
      this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1;
      // As a client that obeys a Retry-After would, but much sooner.
      if (outcome !== '200' && outcome !== '101') await pause(Math.random() * LONGEST_MS);
    }
  }

  #send(account: number): Promise<Outcome> {
    const gateway = this.#gateways[Math.floor(Math.random() * this.#gateways.length)];
    return sendRandom(gateway?.url ?? '', `token${account}`, LONGEST_MS);
  }

  async #break({ everyMs, faults = FAULTS }: Plan): Promise<void> {
    for (let count = 0; ; count++) {
      await this.#wait(everyMs);
      if (this.#isOver) return;
      const fault = faults[count % faults.length] ?? 'kill';
      await this.#cause(fault, count % GATEWAYS);
      this.#faults[fault] += 1;
    }
  }

  async #cause(fault: Fault, index: number): Promise<void> {
    const gateway = this.#gateways[index];
    if (gateway === undefined) throw new TypeError('a gateway is missing');
    if (fault === 'kill') {
      const ended = once(gateway.process, 'exit');
      gateway.process.kill('SIGKILL');
      await ended;
      this.#gateways[index] = await this.#startGateway();
    } else if (fault === 'pause') {
      gateway.process.kill('SIGSTOP');
      await pause(800);
      gateway.process.kill('SIGCONT');
    } else if (fault === 'freeze') {
      await this.#except(fault, async () => {
        gateway.process.kill('SIGSTOP');
        await pause(4_000);
        gateway.process.kill('SIGCONT');
      });
    } else {
      await this.#except(fault, async () => {
        await this.#redis.kill();
        await pause(500);
        await this.#redis.start();
      });
    }
  }

  async #except(fault: Fault, act: () => Promise<void>): Promise<void> {
    const exception = { fault, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
    this.#exceptions.push(exception);
    await act();
    exception.toMs = performance.now() + EXCEPTION_MS;
    await this.#wait(EXCEPTION_MS);
  }

  #exceptionAt(atMs: number): Exception | undefined {
    return this.#exceptions.find(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs);
  }

  async #wait(ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    while (!this.#isOver && performance.now() < untilMs) await pause(50);
  }

  /** Waits until as many requests as the limit allows are in flight together. Rejects if they never are. */
  async #untilFree(account: number, giveUpMs: number): Promise<void> {
    for (;;) {
      const statuses = await Promise.all(
        Array.from({ length: LIMIT }, async (_, index) => {
          const { url = '' } = this.#gateways[index % GATEWAYS] ?? {};
          const headers = { Authorization: `Bearer token${account}` };
          return (await fetch(`${url}/slow?ms=300`, { headers })).status;
        }),
      );
      if (statuses.every((status) => status === 200)) return;
      if (performance.now() > giveUpMs) throw new Error(`account ${account} has no free slots: ${statuses}`);
    }
  }
}
