import type { Logger } from 'pino';
import type { IdentityObserver, ProviderName } from '../observer.ts';
import { Backoff, type BackoffOptions } from './backoff.ts';
import { FairSlots, type FairSlotsOptions } from './fair-slots.ts';

/** Metrics and log of an identity source or directory. */
export interface Reporting {
  readonly observer: IdentityObserver;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export interface ProviderOptions extends Reporting {
  readonly name: ProviderName;
  readonly timeoutMs: number;
  readonly backoff: BackoffOptions;
  /** Statuses that are valid answers. Default: 200. */
  readonly statuses?: readonly number[];
}

export interface ProviderAnswer {
  readonly status: number;
  /** The parsed JSON of a 200; undefined for other statuses. */
  readonly body: unknown;
}

/** Larger than any key set or introspection answer. */
const MAX_BODY_BYTES = 1_048_576;

/**
 * Limits concurrent calls, so that a flood of made-up tokens does not become a flood of calls. One requester cannot take all
 * calls or all places in the queue. Each queued call holds a request.
 */
const CALLS: FairSlotsOptions = { slots: 128, slotsPerHolder: 96, waiting: 4096, waitingPerHolder: 512 };

/** One HTTP request to the provider. */
export interface ProviderRequest {
  readonly url: string;
  readonly init: RequestInit;
  /** The client or principal that caused the call. All requesters have the same share of the calls. */
  readonly requester: string;
}

/** Calls an HTTP service with a timeout, a backoff, and a limit on concurrent calls that requesters share fairly. */
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
   * Never rejects: resolves to 'unavailable' on any failure. Logs when failures begin and when they end. If too many calls are
   * in progress, waits for one to finish, up to the timeout of a call.
   *
   * @param check throws if the body of a 200 is not usable, which also counts as a failure
   */
  async call(
    request: ProviderRequest,
    check: (body: unknown) => void,
  ): Promise<ProviderAnswer | 'unavailable'> {
    if (this.#backoff.isWaiting(performance.now())) return 'unavailable';
    if (!(await this.#calls.take(request.requester, this.#options.timeoutMs))) return 'unavailable';
    try {
      return this.#backoff.take(performance.now()) ? await this.#callNow(request, check) : 'unavailable';
    } finally {
      this.#calls.release(request.requester);
    }
  }

  async #callNow(
    request: ProviderRequest,
    check: (body: unknown) => void,
  ): Promise<ProviderAnswer | 'unavailable'> {
    const startMs = performance.now();
    try {
      const answer = await this.#fetch(request);
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

  async #fetch({ url, init }: ProviderRequest): Promise<ProviderAnswer> {
    const { timeoutMs, statuses = [200] } = this.#options;
    const call = { ...init, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) } as const;
    const response = await fetch(url, call).catch((error: unknown) => {
      if (isConnectionLost(error)) return fetch(url, call);
      throw error;
    });
    const text = await readText(response);
    const { status } = response;
    if (!statuses.includes(status)) throw new Error(`answered ${status}`);
    return { status, body: status === 200 ? JSON.parse(text) : undefined };
  }

  #observe(outcome: 'answered' | 'failed', startMs: number): void {
    this.#options.observer.providerCalled(this.#options.name, outcome, performance.now() - startMs);
  }

  #succeeded(): void {
    const { name, log } = this.#options;
    if (this.#backoff.isFailing) log.info({ provider: name }, 'the identity provider is available again');
    this.#backoff.succeeded();
  }

  #failed(error: unknown): void {
    const { name, log } = this.#options;
    if (!this.#backoff.isFailing) {
      log.warn({ provider: name, reason: reasonOf(error) }, 'the identity provider is unavailable');
    }
    this.#backoff.failed(performance.now());
  }
}

/** Codes of a connection that ended before an answer came. */
const LOST = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** A provider may close an idle connection just when the next call is sent. No call changes anything, so each can be made twice. */
function isConnectionLost(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && LOST.includes(String(cause.code));
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) throw new Error(`the answer has more than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The cause of an error, which is more specific than `fetch failed`. Never contains the body, which may hold secrets. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'the answer is not JSON';
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
