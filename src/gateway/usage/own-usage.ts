/** A path on the port for clients where callers see their own limits. It costs no points. */
import type { Awaitable } from '../../domain/awaitable.ts';
import { Refusal } from '../../domain/problems.ts';
import { addCors, addPreflight, isPreflight } from '../../http/message/fields/cors.ts';
import { FieldLines } from '../../http/message/head/field-lines.ts';
import { authorise } from '../../stages/authorise.ts';
import { CALLER_STAGES, runStages } from '../../stages/decide.ts';
import { refuseUsageMethod, USAGE_METHODS } from '../../stages/match.ts';
import type { Operation } from '../../stages/request-context.ts';
import { addGatewayFields } from '../../stages/respond.ts';
import type { GatewayDependencies } from '../dependencies.ts';
import type { PortRequest, PortStage } from '../entrance.ts';
import { AddressLimit } from './address-limit.ts';
import { type OwnUsageAnswer, ownUsage } from './own-usage-answer.ts';

/** What asking for the own limits is logged as. */
export const OWN_USAGE: Operation = { id: 'usage', kind: 'read', cost: 0, access: 'caller', listed: true };

/** Answers requests for the path of the setting `usage`. Their addresses are not blocked. */
export class OwnUsage {
  readonly #path: string;
  readonly #shared: GatewayDependencies;
  readonly #addresses: AddressLimit;
  readonly #stages: readonly PortStage<GatewayDependencies>[] = [
    (request) => this.#limitAddress(request),
    ...CALLER_STAGES,
    (request) => this.#answerCaller(request),
  ];

  constructor(path: string, shared: GatewayDependencies) {
    this.#path = path;
    this.#shared = shared;
    this.#addresses = new AddressLimit(shared.usage.requestsPerMinute, shared.buckets.fields);
  }

  /** Whether the gateway answers this request itself, whatever its method. The request has its target. */
  isAsked({ target }: PortRequest): boolean {
    return target?.path === this.#path;
  }

  answer(request: PortRequest): Awaitable<Refusal | 'answered' | undefined> {
    if (request.method === 'OPTIONS') return this.#answerOptions(request);
    const refusal = refuseUsageMethod(request.method);
    if (refusal !== undefined) return refusal;
    request.operation = OWN_USAGE;
    return runStages(this.#stages, request, this.#shared);
  }

  async #limitAddress(request: PortRequest): Promise<Refusal | undefined> {
    const address = request.clientNetwork;
    const client = { address, hashTag: address };
    const charged = await this.#addresses.count(request, client, OWN_USAGE);
    if (charged instanceof Refusal) return charged;
    if (charged.outcome !== 'denied') return undefined;
    request.publicClient = client;
    // Strangers must not make notifications: these would push out notifications about customers.
    request.charged = { ...charged, filling: undefined };
    return charged.refusal;
  }

  async #answerCaller(request: PortRequest): Promise<Refusal | 'answered'> {
    const answer = await this.#read(request);
    if (answer instanceof Refusal) return answer;
    const lines = this.#linesOf(request);
    if (answer.degraded) lines.add('Service-RateLimit-Mode', 'degraded');
    const text = JSON.stringify(answer);
    lines.addAll(['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(text)}`]);
    request.source.answer(200, lines, { text, encoding: 'utf8' });
    return 'answered';
  }

  async #read({ identified, caller }: PortRequest): Promise<OwnUsageAnswer | Refusal> {
    if (identified === undefined || caller === undefined) throw new TypeError('a stage was skipped');
    const { principal, directory } = identified;
    if (principal.type !== 'Person') return ownUsage(caller, undefined, this.#shared);
    const home = await authorise(directory, principal, { access: 'person' }, caller.account);
    return home instanceof Refusal ? home : ownUsage(caller, home, this.#shared);
  }

  #answerOptions(request: PortRequest): 'answered' {
    const { source, cors } = request;
    const isPreflighted = isPreflight(source.head);
    const lines = isPreflighted ? new FieldLines() : this.#linesOf(request);
    if (isPreflighted) {
      addGatewayFields(lines, request);
      addPreflight(lines, source.head, cors, USAGE_METHODS, this.#shared.cors);
    } else lines.add('Allow', USAGE_METHODS.join(', '));
    source.answer(204, lines, { text: '', encoding: 'latin1' });
    return 'answered';
  }

  #linesOf(request: PortRequest): FieldLines {
    const lines = new FieldLines();
    addGatewayFields(lines, request);
    addCors(lines, request.cors);
    // It depends on who asks, and on when.
    lines.add('Cache-Control', 'no-store');
    return lines;
  }
}
