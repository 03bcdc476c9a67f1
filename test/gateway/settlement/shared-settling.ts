import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

/** What an operation is that costs 4,000 points until it is settled. */
const settled = (path: string, settlement: object) => ({ method: 'POST', path, cost: 4_000, ...settlement });

const LIST = [
  settled('/json', { settle: { json: '/usage/total_tokens' } }),
  settled('/header', { settle: { header: 'X-Cost' } }),
  settled('/bytes', { settle: { bytes: 1024 } }),
  { ...settled('/bytes', { settle: { bytes: 1024 } }), method: 'GET' },
  settled('/reserve', { reserve: { json: '/max_tokens', most: 32_000 } }),
  { method: 'GET', path: '/plain', cost: 3 },
];

/**
 * One gateway for the tests of a file, with an operation for each way to settle. Each test says how its upstream answers, and asks for the
 * cost of each of its requests: `startSettling` starts a gateway for a test that needs its own.
 */
export class SharedSettling {
  /** How the upstream answers from now on. */
  answer: (response: ServerResponse, request: IncomingMessage) => void = (response) => response.end();
  #gateway: TestGateway | undefined;
  #lineCount = 0;

  constructor() {
    beforeAll(async () => {
      this.#gateway = await startGateway({
        upstream: await startUpstream((request, response) => this.answer(response, request)),
        limits: PLENTY,
        settings: { log: { level: 'info' }, operations: { list: LIST } },
      });
    });
    afterAll(() => this.gateway.close());
  }

  get gateway(): TestGateway {
    if (this.#gateway === undefined) throw new TypeError('the gateway starts before the first test');
    return this.#gateway;
  }

  /** What the access log says of the request that has just been sent, once it has been logged. */
  async lastLine(): Promise<Readonly<Record<string, unknown>>> {
    this.#lineCount++;
    await expect.poll(() => linesOf(this.gateway, 'request').length).toBe(this.#lineCount);
    return linesOf(this.gateway, 'request').at(-1) ?? {};
  }

  /** What that line says of the cost. */
  async lastCost(): Promise<object> {
    const { cost, settled, unsettled } = await this.lastLine();
    return {
      ...(cost !== undefined && { cost }),
      ...(settled !== undefined && { settled }),
      ...(unsettled !== undefined && { unsettled }),
    };
  }
}
