import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { ownAccounts } from '../../fixtures/own-accounts.ts';
import { costIn, OPERATIONS } from '../../fixtures/settling.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

interface Options {
  readonly limits?: Readonly<Record<string, unknown>>;
  readonly store?: Record<string, unknown>;
  readonly operations?: object;
}

/** For tests that read what an Account has used. */
const CALLERS = Array.from({ length: 20 }, (_, index) => `caller-${index}`);

/**
 * One gateway for the tests of a file, with an operation for each way to settle. Each test says how its upstream answers, and asks for the
 * cost of each of its requests: `startSettling` starts a gateway for a test that needs its own.
 */
export class SharedSettling {
  /** How the upstream answers from now on. */
  answer: (response: ServerResponse, request: IncomingMessage) => void = (response) => response.end();
  #gateway: TestGateway | undefined;
  #lineCount = 0;
  #callerCount = 0;

  constructor({ limits = PLENTY, store = {}, operations }: Options = {}) {
    beforeAll(async () => {
      this.#gateway = await startGateway({
        upstream: await startUpstream((request, response) => this.answer(response, request)),
        limits,
        store,
        settings: { log: { level: 'info' }, operations: { list: OPERATIONS, ...operations } },
        identities: ownAccounts(['service', ...CALLERS]),
      });
    });
    afterAll(() => this.gateway.close());
  }

  get gateway(): TestGateway {
    if (this.#gateway === undefined) throw new TypeError('the gateway starts before the first test');
    return this.#gateway;
  }

  /** A token of nobody else, which is also the id of its Account. */
  newCaller(): string {
    return CALLERS[this.#callerCount++] ?? '';
  }

  /** What the access log says of the request that has just been sent, once it has been logged. */
  async lastLine(): Promise<Readonly<Record<string, unknown>>> {
    this.#lineCount++;
    await expect.poll(() => linesOf(this.gateway, 'request').length).toBe(this.#lineCount);
    return linesOf(this.gateway, 'request').at(-1) ?? {};
  }

  /** What that line says of the cost. */
  async lastCost(): Promise<object> {
    return costIn(await this.lastLine());
  }
}
