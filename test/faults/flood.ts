import { sendTo, type TestGateway } from '../fixtures/gateway.ts';

export const WINDOW_MS = 1_000;
/** Requests per second of the Account that floods. */
export const LIMIT = 12;
/** How many times the limit is sent. Beside other tests it is less, which still sends each replica more than its part. */
const TIMES_THE_LIMIT = process.env.WEIR_TEST_OUTAGE_MS === undefined ? 5 : 10;
const FLOOD_MS = WINDOW_MS / (TIMES_THE_LIMIT * LIMIT);
/** A machine without time for this test would answer all of them too late. */
const MOST_OPEN = 60;
/** The replica that gets each request: four replicas, which share the flood unevenly. */
const TURNS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3];

export interface Answered {
  readonly replica: number;
  readonly sentMs: number;
  readonly answeredMs: number;
  /** 0 without an answer, and for one that has to say whether it was counted and does not. */
  readonly status: number;
  readonly isDegraded: boolean;
  readonly isFlood: boolean;
}

export const FLOODED = { token: 'lonely' };
const QUIET = { token: 'service' };

/** A flood of one Account, and beside each fourth request one of another Account, which has no limit to speak of. */
export class Flood {
  readonly answers: Answered[] = [];
  readonly #gateways: readonly TestGateway[];
  readonly #timer: NodeJS.Timeout;
  readonly #startMs = performance.now();
  readonly #open = new Set<Promise<void>>();
  #sent = 0;

  constructor(gateways: readonly TestGateway[]) {
    this.#gateways = gateways;
    this.#timer = setInterval(() => this.#sendDue(), FLOOD_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  /** Requests that are due, whether or not the answers keep up, as far as this process does. */
  #sendDue(): void {
    const due = (performance.now() - this.#startMs) / FLOOD_MS;
    for (; this.#sent < due; this.#sent++) {
      if (this.#open.size >= MOST_OPEN) continue;
      const replica = TURNS[this.#sent % TURNS.length] ?? 0;
      this.#track(this.#send(replica, true));
      if (this.#sent % 4 === 0) this.#track(this.#send(replica, false));
    }
  }

  #track(sending: Promise<void>): void {
    const sent = sending.finally(() => this.#open.delete(sent));
    this.#open.add(sent);
  }

  async #send(replica: number, isFlood: boolean): Promise<void> {
    const { url = '' } = this.#gateways[replica] ?? {};
    const sentMs = performance.now();
    const answer = await sendTo(url, 'GET', '/v3/things', isFlood ? FLOODED : QUIET).catch(() =>
      Response.error(),
    );
    await answer.arrayBuffer();
    const isDegraded = answer.headers.get('Service-RateLimit-Mode') === 'degraded';
    const isCounted = answer.headers.get('RateLimit') !== null;
    const status = isDegraded === isCounted ? 0 : answer.status;
    this.answers.push({ replica, sentMs, answeredMs: performance.now(), status, isDegraded, isFlood });
  }
}

/** The most requests that certainly were admitted within one second, over the limit. */
export function fullestWindow(answers: readonly Answered[], fromMs: number, toMs: number): number {
  const admitted = answers.filter(
    ({ sentMs, answeredMs, status, isFlood }) =>
      isFlood && status === 200 && sentMs >= fromMs && answeredMs <= toMs,
  );
  let fullest = 0;
  for (const { sentMs: startMs } of admitted) {
    const inside = admitted.filter(
      ({ sentMs, answeredMs }) => sentMs >= startMs && answeredMs < startMs + WINDOW_MS,
    );
    fullest = Math.max(fullest, inside.length);
  }
  return fullest / LIMIT;
}
