import type { Logger } from 'pino';
import { Backoff, type BackoffOptions } from './backoff.ts';
import { FairSlots, type FairSlotsOptions } from './fair-slots.ts';
import type { IdentityObserver, ProviderName } from './observer.ts';

/** Where what an identity source or a directory has to say goes. */
export interface Reporting {
  readonly observer: IdentityObserver;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export interface ProviderOptions extends Reporting {
  readonly name: ProviderName;
  readonly timeoutMs: number;
  readonly backoff: BackoffOptions;
  /** Statuses that carry an answer; 200 alone unless told. */
  readonly statuses?: readonly number[];
}

export interface ProviderAnswer {
  readonly status: number;
  /** The JSON of a 200; undefined with any other status. */
  readonly body: unknown;
}

/** More than any key set or introspection answer needs. */
const LONGEST_BODY_BYTES = 1_048_576;

/**
 * A flood of made-up tokens must not become a flood of calls, and the one who sends it may take neither all calls nor all
 * places of those who wait. What is waiting holds a request each.
 */
const CALLS: FairSlotsOptions = { slots: 128, slotsPerHolder: 96, waiting: 4096, waitingPerHolder: 512 };

/** One question. */
export interface Question {
  readonly url: string;
  readonly init: RequestInit;
  /** On whose account it is asked: all askers have the same share of the calls. */
  readonly asker: string;
}

/** Asks somebody over HTTP who may be down: with a deadline, a backoff, and a bound of calls that all askers share. */
export class Provider {
  readonly #options: ProviderOptions;
  readonly #backoff: Backoff;
  readonly #calls = new FairSlots(CALLS);

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.backoff);
  }

  /** Whether the last call failed. */
  get isFailing(): boolean {
    return this.#backoff.isFailing;
  }

  /**
   * Never rejects: whatever goes wrong is 'unavailable', told in the log when it begins and when it ends. A question that finds
   * no free call waits for one as long as an answer may take.
   *
   * @param check throws where the body of a 200 is of no use: the provider has failed then as well
   */
  async ask(question: Question, check: (body: unknown) => void): Promise<ProviderAnswer | 'unavailable'> {
    if (this.#backoff.isWaiting(performance.now())) return 'unavailable';
    if (!(await this.#calls.take(question.asker, this.#options.timeoutMs))) return 'unavailable';
    try {
      return this.#backoff.take(performance.now()) ? await this.#askNow(question, check) : 'unavailable';
    } finally {
      this.#calls.release(question.asker);
    }
  }

  async #askNow(question: Question, check: (body: unknown) => void): Promise<ProviderAnswer | 'unavailable'> {
    const startMs = performance.now();
    try {
      const answer = await this.#call(question);
      if (answer.status === 200) check(answer.body);
      this.#observe('answered', startMs);
      this.#succeeded();
      return answer;
    } catch (error) {
      this.#observe('failed', startMs);
      this.#failed(error);
      return 'unavailable';
    }
  }

  async #call({ url, init }: Question): Promise<ProviderAnswer> {
    const { timeoutMs, statuses = [200] } = this.#options;
    const response = await fetch(url, {
      ...init,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await readText(response);
    const { status } = response;
    if (!statuses.includes(status)) throw new Error(`answered ${status}`);
    return { status, body: status === 200 ? JSON.parse(text) : undefined };
  }

  #observe(outcome: 'answered' | 'failed', startMs: number): void {
    this.#options.observer.providerAsked(this.#options.name, outcome, performance.now() - startMs);
  }

  #succeeded(): void {
    const { name, log } = this.#options;
    if (this.#backoff.isFailing) log.info({ provider: name }, 'the identity provider answers again');
    this.#backoff.succeeded();
  }

  #failed(error: unknown): void {
    const { name, log } = this.#options;
    if (!this.#backoff.isFailing) {
      log.warn({ provider: name, reason: reasonOf(error) }, 'the identity provider gives no usable answer');
    }
    this.#backoff.failed(performance.now());
  }
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > LONGEST_BODY_BYTES) throw new Error(`answered more than ${LONGEST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** `fetch failed` says nothing; its cause does. The body is never told: it may hold what is secret. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'answered something that is not JSON';
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
