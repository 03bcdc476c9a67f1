import { setTimeout } from 'node:timers/promises';

/** The ids of the demo's own requests begin with this. */
export const TRAFFIC_REQUEST_ID = 'demo-traffic-';

/** Four requests a second: enough to see movement, too few to be felt. */
const PAUSE_MS = 250;

/** One turn in so many is a burst, the first of them after a second; one is a write. */
const TURNS_PER_BURST = 40;
const BURST_TURN = 4;
const TURNS_PER_WRITE = 10;

/** More than `account-read` of acct_6 in src/demo/limits.yaml, so that the last ones get a 429. */
const BURST = 8;

/** A request that the platform has not answered by then is given up. */
const TIMEOUT_MS = 5_000;

/** Tokens of src/demo/identities.yaml whose Accounts and Organization no example of the demo uses. */
const TOKENS = ['demo-traffic-4', 'demo-traffic-5', 'demo-traffic-6'];

const READS = [
  '/v3/payments/payees',
  '/v3/payments/invoices',
  '/v3/finance/transactions',
  '/v3/search/payees?page[size]=10',
  '/v3/platform/events',
];

/** Sends a few requests a second through a gateway with the demo's identities, with a few 429s, until it is stopped. */
export class DemoTraffic {
  readonly #url: string;
  readonly #stopped = new AbortController();
  #sent = 0;

  constructor(url: string) {
    this.#url = url;
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let turn = 1; !signal.aborted; turn += 1) {
      await setTimeout(PAUSE_MS, undefined, { signal }).catch(() => {});
      if (turn % TURNS_PER_BURST === BURST_TURN) await this.#burst();
      else if (turn % TURNS_PER_WRITE === 0) await this.#write();
      else await this.#read(oneOf(TOKENS));
    }
  }

  async #burst(): Promise<void> {
    const [token = ''] = TOKENS.slice(-1);
    await Promise.all(Array.from({ length: BURST }, () => this.#read(token)));
  }

  #read(token: string): Promise<void> {
    return this.#send(token, oneOf(READS), {});
  }

  /** The key makes the platform answer as it did the first time, so that its data does not grow. */
  #write(): Promise<void> {
    const headers = { 'Idempotency-Key': TRAFFIC_REQUEST_ID, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ name: 'Blue Fin' });
    return this.#send(oneOf(TOKENS), '/v3/payments/payees', { method: 'POST', headers, body });
  }

  async #send(token: string, path: string, { headers, ...init }: RequestInit): Promise<void> {
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    this.#sent += 1;
    const id = `${TRAFFIC_REQUEST_ID}${this.#sent}`;
    try {
      const response = await fetch(this.#url + path, {
        ...init,
        headers: { ...headers, Authorization: `Bearer ${token}`, 'X-Request-Id': id },
        signal,
      });
      await response.arrayBuffer();
    } catch {
      // The gateway or the platform is ending, or is busy: the next request may succeed.
    }
  }
}

function oneOf(choices: readonly string[]): string {
  return choices[Math.floor(Math.random() * choices.length)] ?? '';
}
