/** What the ports for clients and for decisions have in common: the life of a request, behind Fastify or at the edge. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Awaitable, andThen, isLate } from '../domain/awaitable.ts';
import { Refusal } from '../domain/problems.ts';
import type { TrustedProxies } from '../http/message/fields/forwarded.ts';
import { NodeExchange, turnOf } from '../http/server/node/exchange.ts';
import { shedLoad, surplusRefusal } from '../http/server/overload.ts';
import type { ClientServer } from '../http/server/server.ts';
import { createUnlistedLog } from '../observe/log/unlisted-log.ts';
import type { Exchange } from '../stages/exchange.ts';
import { normalise } from '../stages/normalise.ts';
import { finishExchange } from './begin-request.ts';
import type { GatewayDependencies } from './dependencies.ts';

/** What all requests of a port share. */
export interface PortDependencies extends GatewayDependencies {
  readonly trusted: TrustedProxies;
  /** Counts and logs an exchange that has ended. */
  readonly finish: (exchange: Exchange) => void;
}

/** What becomes of a request: a refusal, `answered`, or undefined for the next step. */
export type Outcome = Refusal | 'answered' | undefined;

/**
 * What differs between ports.
 *
 * @template Begun what the port finds out about a request when it begins
 */
export interface PortRole<Begun = void> {
  /** Message of the log for an error that was thrown. */
  readonly failure: string;
  /** Completes a new exchange, so that it can be logged. */
  begin(exchange: Exchange): Begun;
  /** Examines the request, unless the port refuses it anyway. */
  inspect(exchange: Exchange, begun: Begun): Outcome;
  runStages(exchange: Exchange): Awaitable<Outcome>;
  /** Serves a request that has passed the stages; a port whose stages answer everything has nothing to serve. */
  serve(exchange: Exchange): Refusal | undefined;
  refuse(exchange: Exchange, refusal: Refusal): void;
}

export function portDependencies(
  dependencies: GatewayDependencies,
  trusted: TrustedProxies,
): PortDependencies {
  const finishing = { ...dependencies, noteUnlisted: createUnlistedLog(dependencies.log) };
  return { ...dependencies, trusted, finish: (exchange) => finishExchange(exchange, finishing) };
}

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange | undefined;
  }
}

/** The life of a port's requests. Those that Fastify sees go through it step by step, in hooks; those of the edge at once. */
export class Port<Begun = void> {
  readonly #role: PortRole<Begun>;
  readonly #log: GatewayDependencies['log'];

  constructor(role: PortRole<Begun>, log: GatewayDependencies['log']) {
    this.#role = role;
    this.#log = log;
  }

  /** Gives the server of the port its hooks, and has it serve what the edge reads. */
  async setUp({ app, connections }: ClientServer, maxEventLoopDelayMs: number): Promise<void> {
    app.decorateRequest('exchange', undefined);
    app.addHook('onRequest', (request, reply, done) => {
      const turn = turnOf(request.raw);
      if (turn.connection.isClosing) {
        reply.hijack();
        return;
      }
      const exchange = new NodeExchange(turn);
      request.exchange = exchange;
      this.#settle(exchange, this.#admit(exchange), done, reply);
    });
    const whyBusy = await shedLoad(app, maxEventLoopDelayMs, (request, reply, refusal) => {
      const exchange = exchangeOf(request);
      this.#settle(exchange, refusal, () => undefined, reply);
    });
    app.addHook('onRequest', (request, reply, done) => {
      const exchange = exchangeOf(request);
      const settled = andThen(this.#role.runStages(exchange), (outcome) =>
        this.#settle(exchange, outcome, done, reply),
      );
      if (isLate(settled)) settled.then(() => undefined, done);
    });
    app.setErrorHandler((error, { exchange }, reply) => {
      reply.hijack();
      if (exchange === undefined) reply.raw.destroy();
      else this.#fail(exchange, error);
    });
    connections.onExchange = (exchange) => this.#serveAtEdge(exchange, whyBusy);
  }

  /** The handler of Fastify's route. */
  readonly serve = (request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void): void => {
    try {
      const exchange = exchangeOf(request);
      const refusal = this.#role.serve(exchange);
      // Hijack behind `serve`: if it throws, the error handler can still reply.
      reply.hijack();
      if (refusal !== undefined) this.#role.refuse(exchange, refusal);
    } catch (error) {
      done(error as Error);
    }
  };

  #serveAtEdge(exchange: Exchange, whyBusy: () => Refusal | undefined): void {
    try {
      const outcome = this.#admit(exchange) ?? whyBusy() ?? this.#role.runStages(exchange);
      if (isLate(outcome)) this.#finishLater(exchange, outcome);
      else this.#finish(exchange, outcome);
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #finishLater(exchange: Exchange, outcome: PromiseLike<Outcome>): void {
    outcome.then(
      (settled) => this.#finishOrFail(exchange, settled),
      (error) => this.#fail(exchange, error),
    );
  }

  #finishOrFail(exchange: Exchange, outcome: Outcome): void {
    try {
      this.#finish(exchange, outcome);
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #finish(exchange: Exchange, outcome: Outcome): void {
    const settled = outcome ?? this.#role.serve(exchange);
    if (settled instanceof Refusal) this.#role.refuse(exchange, settled);
  }

  #admit(exchange: Exchange): Outcome {
    const begun = this.#role.begin(exchange);
    return surplusRefusal(exchange) ?? exchange.brokenBy ?? this.#role.inspect(exchange, begun);
  }

  /** Goes on, unless the request has its answer. */
  #settle(exchange: Exchange, outcome: Outcome, goOn: () => void, reply?: FastifyReply): void {
    if (outcome === undefined) {
      goOn();
      return;
    }
    reply?.hijack();
    if (outcome !== 'answered') this.#role.refuse(exchange, outcome);
  }

  #fail(exchange: Exchange, error: unknown): void {
    this.#log.error({ err: error, requestId: exchange.requestId }, this.#role.failure);
    if (exchange.hasBegun || exchange.isEnded) exchange.abort();
    else {
      const refusal = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');
      this.#role.refuse(exchange, refusal);
    }
  }
}

function exchangeOf({ exchange }: FastifyRequest): Exchange {
  if (exchange === undefined) throw new TypeError('the request was never begun');
  return exchange;
}

/** Writes the canonical target to the exchange, or returns why there is none. */
export function normaliseTarget(
  exchange: Exchange,
  rawTarget: string,
  { operations, upstream }: PortDependencies,
): Refusal | undefined {
  const { method } = exchange;
  const target = normalise(rawTarget, upstream.pathProfile, (folded) =>
    operations.servesSlash(method, folded),
  );
  if (target instanceof Refusal) return target;
  exchange.target = target;
  return undefined;
}
