import type { Logger } from 'pino';
import { Backoff, type BackoffOptions } from './backoff.ts';
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

/** Calls under way at once: a flood of made-up tokens must not become a flood of calls. */
const MOST_CALLS = 128;

/** Somebody who is asked over HTTP and may be down: with a deadline, a backoff, and no more calls than it can take. */
export class Provider {
  readonly #options: ProviderOptions;
  readonly #backoff: Backoff;
  #calls = 0;

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.backoff);
  }

  /** Whether the last call failed. */
  get isFailing(): boolean {
    return this.#backoff.isFailing;
  }

  /**
   * Never rejects: whatever goes wrong is 'unavailable', told in the log when it begins and when it ends.
   *
   * @param check throws where the body of a 200 is of no use: the provider has failed then as well
   */
  async ask(
    url: string,
    init: RequestInit = {},
    check: (body: unknown) => void = () => {},
  ): Promise<ProviderAnswer | 'unavailable'> {
    if (this.#calls >= MOST_CALLS || !this.#backoff.take(performance.now())) return 'unavailable';
    const startMs = performance.now();
    this.#calls++;
    try {
      const answer = await this.#call(url, init);
      if (answer.status === 200) check(answer.body);
      this.#observe('answered', startMs);
      this.#succeeded();
      return answer;
    } catch (error) {
      this.#observe('failed', startMs);
      this.#failed(error);
      return 'unavailable';
    } finally {
      this.#calls--;
    }
  }

  async #call(url: string, init: RequestInit): Promise<ProviderAnswer> {
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
