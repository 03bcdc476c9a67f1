/** A path on the port for clients where callers see their own limits. It costs no points. */
import { Refusal } from '../../domain/problems.ts';
import { addCors, addPreflight, isPreflight } from '../../http/message/fields/cors.ts';
import { FieldLines } from '../../http/message/head/field-lines.ts';
import { authorise } from '../../stages/authorise.ts';
import { CALLER_STAGES, refuseAddress } from '../../stages/decide.ts';
import type { Exchange } from '../../stages/exchange.ts';
import type { Operation } from '../../stages/request-context.ts';
import { addGatewayFields } from '../../stages/respond.ts';
import { runStages } from '../../stages/stages.ts';
import type { GatewayDependencies } from '../dependencies.ts';
import type { Outcome } from '../port.ts';
import { AddressLimit } from './address-limit.ts';
import { type OwnUsage as Answer, ownUsage } from './answer.ts';

const OPERATION: Operation = { id: 'usage', kind: 'read', cost: 0, access: 'caller', listed: true };

const METHODS = ['GET', 'HEAD', 'OPTIONS'];

const NOT_READ = new Refusal('MethodNotAllowed', 'The own limits are read with GET.', {
  headers: { Allow: METHODS.join(', ') },
});

/** Answers requests for the path of the setting `usage`. */
export class OwnUsage {
  readonly #path: string;
  readonly #shared: GatewayDependencies;
  readonly #addresses: AddressLimit;

  constructor(path: string, shared: GatewayDependencies) {
    this.#path = path;
    this.#shared = shared;
    this.#addresses = new AddressLimit(shared.usage.requestsPerMinute);
  }

  /** Whether the gateway answers this request itself, whatever its method. The request has its target. */
  isAsked({ target }: Exchange): boolean {
    return target?.path === this.#path;
  }

  async answer(exchange: Exchange): Promise<Outcome> {
    if (exchange.method === 'OPTIONS') return this.#answerOptions(exchange);
    if (!METHODS.includes(exchange.method)) return NOT_READ;
    exchange.operation = OPERATION;
    const refusal =
      refuseAddress(exchange, this.#shared.blocks, OPERATION.cost) ??
      (await this.#limitAddress(exchange)) ??
      (await runStages(CALLER_STAGES, exchange, this.#shared));
    if (refusal !== undefined) return refusal;
    const answer = await this.#read(exchange);
    if (answer instanceof Refusal) return answer;
    const lines = this.#linesOf(exchange);
    if (answer.degraded) lines.add('Service-RateLimit-Mode', 'degraded');
    const text = JSON.stringify(answer);
    lines.addAll(['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(text)}`]);
    return send(exchange, 200, lines, text);
  }

  async #limitAddress(exchange: Exchange): Promise<Refusal | undefined> {
    const address = exchange.clientNetwork;
    const client = { address, hashTag: address };
    const charged = await this.#addresses.count(client, OPERATION);
    if (charged.outcome !== 'denied') return undefined;
    exchange.publicClient = client;
    exchange.charged = charged;
    return charged.refusal;
  }

  async #read({ identified, caller }: Exchange): Promise<Answer | Refusal> {
    if (identified === undefined || caller === undefined) throw new TypeError('a stage was skipped');
    const { principal, directory } = identified;
    if (principal.type !== 'Person') return ownUsage(caller, undefined, this.#shared);
    const home = await authorise(directory, principal, { access: 'person' }, caller.account);
    return home instanceof Refusal ? home : ownUsage(caller, home, this.#shared);
  }

  #answerOptions(exchange: Exchange): Outcome {
    const { head, cors } = exchange;
    if (!isPreflight(head)) {
      const lines = this.#linesOf(exchange);
      lines.add('Allow', METHODS.join(', '));
      return send(exchange, 204, lines, '');
    }
    const lines = new FieldLines();
    addGatewayFields(lines, exchange);
    addPreflight(lines, head, cors, METHODS, this.#shared.cors);
    return send(exchange, 204, lines, '');
  }

  #linesOf(exchange: Exchange): FieldLines {
    const lines = new FieldLines();
    addGatewayFields(lines, exchange);
    addCors(lines, exchange.cors);
    // It depends on who asks, and on when.
    lines.add('Cache-Control', 'no-store');
    return lines;
  }
}

function send(exchange: Exchange, status: number, lines: FieldLines, text: string): 'answered' {
  if (exchange.isAbandoned) {
    exchange.abort();
    return 'answered';
  }
  if (exchange.isUploadUnfinished) exchange.makeLast();
  exchange.dropBody();
  exchange.begin(status, lines);
  exchange.endThisTurn({ text, encoding: 'utf8' });
  return 'answered';
}
