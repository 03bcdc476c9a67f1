import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { errorText } from '../../domain/shown.ts';
import type { IdentityObserver, ProviderName, ProviderOutcome } from '../identity-observer.ts';
import { Attempts } from './attempts.ts';
import { FairSlots, type FairSlotsOptions } from './fair-slots.ts';
import {
  FailedAnswer,
  isMalformed,
  type ProviderAnswer,
  readAnswer,
  UnusableAnswer,
} from './provider-answer.ts';

/** Metrics and log of an identity source or directory. */
export interface Reporting {
  readonly observer: IdentityObserver;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

interface ProviderOptions extends Reporting {
  readonly name: ProviderName;
  readonly timeoutMs: number;
  /** The default tolerates single slow answers, but does not let every request wait for a provider that is down. */
  readonly attempts?: Attempts;
  /** Statuses that are valid answers. Default: 200. */
  readonly statuses?: readonly number[];
}

/**
 * How many questions with an unusable answer are remembered, and for how long. Such a question is not asked again, so that requests with
 * it do not all become calls.
 */
const UNUSABLE = { maxSize: 10_000, sizeCalculation: () => 1, ttl: 1_000, ttlAutopurge: true };

/** A problem that goes on is logged once in this time. */
const QUIET_MS = 60_000;

/**
 * Limits concurrent calls, so that a flood of made-up tokens does not become a flood of calls. One requester cannot take all
 * calls or all places in the queue. Each queued call holds a request.
 */
const CALLS: FairSlotsOptions = { slots: 128, slotsPerHolder: 96, waiting: 4096, waitingPerHolder: 512 };

/** One HTTP request to the provider. */
interface ProviderRequest {
  readonly url: string;
  readonly init: RequestInit;
  /** The client or principal that caused the call. All requesters have the same share of the calls. */
  readonly requester: string;
  /**
   * Identifies what is asked about, without being a token. An unusable answer fails this question alone. Undefined if all
   * callers depend on the answer: then it counts as a failure of the provider.
   */
  readonly question?: string;
}

/**
 * Calls an HTTP service with a timeout, a backoff, and a limit on concurrent calls that requesters share fairly. An answer
 * that is unusable fails one question. Only failures of the provider start the backoff, which fails all.
 */
export class Provider {
  readonly #options: ProviderOptions;
  readonly #attempts: Attempts;
  readonly #calls = new FairSlots(CALLS);
  readonly #unusable = new LRUCache<string, true>(UNUSABLE);
  readonly #quietUntilMs = { failed: 0, unusable: 0 };
  #isFailureLogged = false;

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#attempts = options.attempts ?? new Attempts(2, 250, 5_000);
    // Node loads its client for `fetch` with the first of these globals, in 40 ms, for which the first request would wait.
    Reflect.get(globalThis, 'Headers');
  }

  /** Whether the last call failed. */
  get isFailing(): boolean {
    return this.#attempts.isFailing;
  }

  /**
   * Never rejects: resolves to 'unavailable' on any failure, and if the answer is unusable. Logs when failures begin and when
   * they end. If too many calls are in progress, waits for one to finish, up to the timeout of a call.
   *
   * @param check throws UnusableAnswer if the body of a 200 is not usable
   */
  async call(
    request: ProviderRequest,
    check: (body: unknown) => void,
  ): Promise<ProviderAnswer | 'unavailable'> {
    const { requester, question } = request;
    if (question !== undefined && this.#unusable.has(question)) return 'unavailable';
    if (this.#attempts.isWaiting(performance.now())) return 'unavailable';
    if (!(await this.#calls.take(requester, this.#options.timeoutMs))) return 'unavailable';
    try {
      return this.#attempts.take(performance.now()) ? await this.#callNow(request, check) : 'unavailable';
    } finally {
      this.#calls.release(requester);
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
      const { question } = request;
      const isUnusable = error instanceof UnusableAnswer && question !== undefined;
      this.#observe(isUnusable ? 'unusable' : 'failed', startMs);
      if (isUnusable) this.#unusableFor(question, error);
      else this.#failed(error, question);
      return 'unavailable';
    }
  }

  async #fetch({ url, init }: ProviderRequest): Promise<ProviderAnswer> {
    const { timeoutMs, statuses = [200] } = this.#options;
    const call = { ...init, redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) } as const;
    try {
      const response = await fetch(url, call).catch((error: unknown) => {
        if (isConnectionLost(error)) return fetch(url, call);
        throw error;
      });
      return await readAnswer(response, statuses);
    } catch (error) {
      if (!(error instanceof Error) || !isMalformed(error)) throw error;
      throw new UnusableAnswer(`the answer is malformed: ${reasonOf(error)}`);
    }
  }

  #observe(outcome: ProviderOutcome, startMs: number): void {
    this.#options.observer.providerCalled(this.#options.name, outcome, performance.now() - startMs);
  }

  #succeeded(): void {
    const { name, log } = this.#options;
    if (this.#isFailureLogged) log.info({ provider: name }, 'the identity provider is available again');
    this.#isFailureLogged = false;
    this.#attempts.succeeded();
  }

  #unusableFor(question: string, error: Error): void {
    const { name, log } = this.#options;
    this.#succeeded();
    this.#unusable.set(question, true);
    if (this.#isQuiet('unusable')) return;
    log.warn({ provider: name, reason: error.message }, 'the identity provider gave an unusable answer');
  }

  #failed(error: unknown, question: string | undefined): void {
    const { name, log } = this.#options;
    const answer = error instanceof FailedAnswer ? error : undefined;
    // A provider may fail because of what it is asked. A failure without an answer, or an overload, is never of that kind.
    const isOfQuestion = answer !== undefined && !answer.isOverload;
    this.#attempts.failed(performance.now(), isOfQuestion ? question : undefined);
    if (this.#isFailureLogged || this.#isQuiet('failed')) return;
    this.#isFailureLogged = true;
    const message = answer?.areCredentialsRefused
      ? 'the identity provider refuses the credentials of the gateway'
      : 'the identity provider is unavailable';
    log.warn({ provider: name, reason: reasonOf(error) }, message);
  }

  #isQuiet(problem: 'failed' | 'unusable'): boolean {
    const nowMs = performance.now();
    if (nowMs < this.#quietUntilMs[problem]) return true;
    this.#quietUntilMs[problem] = nowMs + QUIET_MS;
    return false;
  }
}

/** Codes of a connection that ended before an answer came. */
const LOST = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** A provider may close an idle connection just when the next call is sent. No call changes anything, so each can be made twice. */
function isConnectionLost(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && LOST.includes(String(cause.code));
}

/** The cause of an error, which is more specific than `fetch failed`. Never contains the body, which may hold secrets. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return errorText(error.cause instanceof Error ? error.cause : error);
}
