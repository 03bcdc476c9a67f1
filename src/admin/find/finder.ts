import type { FastifyInstance } from 'fastify';
import { nearestOf } from '../../config/reader/value-messages.ts';
import type { Principal } from '../../domain/caller.ts';
import { limitTimeText } from '../../domain/duration.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { type LimitRow, unitOf } from '../../domain/limits/rows.ts';
import { rangeOf } from '../../domain/network.ts';
import type { Access, OperationKind } from '../../domain/operation.ts';
import type { Priced } from '../../domain/settlement/settlement.ts';
import { shownCount } from '../../domain/shown.ts';
import { BLOCK_SCOPES, type BlockScope } from '../../facts/blocks.ts';
import { REQUEST_ID } from '../../stages/request-context.ts';
import { type EndedRequest, MOST_REQUESTS } from '../fleet/owner-report.ts';
import type { RefusedRequest } from '../fleet/refusals.ts';
import type { WhyRefused } from '../why/refusal.ts';
import { shownRefusal } from '../why/shown-refusal.ts';
import type { KnownOwners } from './known-owners.ts';

/** One thing that has an id. */
export interface Found {
  readonly kind: BlockScope | 'plan' | 'limit' | 'operation' | 'request';
  readonly id: string;
  /** What it is, in a few words. */
  readonly text: string;
  /** Whether a principal is a Person, which has a page of its own. */
  readonly isPerson?: boolean;
  /** Whose principal it is, if a file says so. */
  readonly owner?: { readonly scope: 'account' | 'organization'; readonly id: string };
  /** Whether `GET /refusals/{requestId}` says why a request was refused. */
  readonly isExplained?: boolean;
}

/** The answer to `GET /find?q=ID`. */
export interface FindResult {
  readonly q: string;
  readonly found: readonly Found[];
  /** Similar ids; empty if something was found. */
  readonly nearest: readonly Pick<Found, 'kind' | 'id'>[];
  /** Whether callers that no file lists may exist, so that an id that is not found may still be somebody's. */
  readonly mayExist: boolean;
}

/** An operation in force. */
export interface PricedOperation extends Priced {
  readonly method: string;
  readonly path: string;
  readonly kind: OperationKind;
  readonly access: Access;
}

const LONGEST_QUERY = 256;
const MOST_NEAREST = 8;

/** Finds whatever has an id. */
export class Finder {
  readonly #sources;

  constructor(sources: {
    readonly owners: KnownOwners;
    limits(): Limits;
    operations(): readonly PricedOperation[];
    /** Requests with this id that got a 429 within a day; undefined while Redis cannot be read. */
    refused(requestId: string): Promise<readonly WhyRefused[] | undefined>;
    /** Requests that any replica refused in the last minutes, for whatever reason. */
    refusals(): Promise<readonly RefusedRequest[]>;
    /** Requests with this id that ended at any replica in the last minutes, the last one first. May take two seconds. */
    requests(requestId: string): Promise<readonly EndedRequest[]>;
  }) {
    this.#sources = sources;
  }

  async find(q: string): Promise<FindResult> {
    const { owners } = this.#sources;
    const address = rangeOf(q);
    // Replicas are asked about owners and requests at the same time.
    const ended = REQUEST_ID.test(q) ? this.#sources.requests(q) : NONE;
    const found: Found[] = [
      ...(await owners.scopesOf(q)).map((scope) => this.#owner(scope, q)),
      ...(address === undefined
        ? []
        : [{ kind: 'address', id: address, text: addressText(address) } as const]),
      ...this.#settings(q),
      ...(await this.#refused(q)),
    ];
    if (found.length === 0) found.push(...(await ended).map((request) => endedRequest(q, request)));
    const nearest = found.length > 0 ? [] : this.#nearest(q);
    return { q, found, nearest, mayExist: !owners.areListed };
  }

  #owner(scope: BlockScope, id: string): Found {
    const text = `${scope[0]?.toUpperCase()}${scope.slice(1)}`;
    if (scope !== 'principal') return { kind: scope, id, text };
    const principal = this.#sources.owners.principalOf(id);
    if (principal === undefined) return { kind: scope, id, text, isPerson: true };
    const { type } = principal;
    const owner = ownerOf(principal);
    return {
      kind: scope,
      id,
      text: `${type} of ${owner.scope} ${owner.id}`,
      isPerson: type !== 'ServiceAccount',
      owner,
    };
  }

  #settings(q: string): readonly Found[] {
    const { plans, rows, defaults } = this.#sources.limits();
    const set = plans.get(q);
    return [
      ...(set === undefined ? [] : [{ kind: 'plan', id: q, text: planText(set) } as const]),
      ...rows
        .filter(({ name }) => name === q)
        .map((row) => ({ kind: 'limit', id: q, text: limitText(row, defaults[q]?.limit) }) as const),
      ...this.#sources
        .operations()
        .filter(({ id, method, path }) => [id, path, `${method} ${path}`].includes(q))
        .map(({ id, method, path, cost }) => {
          const points = cost === 1 ? '1 point' : `${cost} points`;
          return { kind: 'operation', id, text: `${method} ${path}, ${points}` } as const;
        }),
    ];
  }

  async #refused(q: string): Promise<readonly Found[]> {
    const refused = ((await this.#sources.refused(q)) ?? []).map((one) => shownRefusal(q, one));
    if (refused.length > 0)
      return refused.map(({ at, text }) => ({
        kind: 'request',
        id: q,
        text: `${at} ${text}`,
        isExplained: true,
      }));
    const refusals = await this.#sources.refusals();
    return refusals
      .filter(({ requestId }) => requestId === q)
      .slice(0, MOST_REQUESTS)
      .map(({ detail, ...request }) => endedRequest(q, { ...request, owner: null, reason: detail }));
  }

  #nearest(q: string): FindResult['nearest'] {
    const { owners, limits, operations } = this.#sources;
    const { plans, rows } = limits();
    const settings = [
      { kind: 'plan', ids: [...plans.keys()] },
      { kind: 'limit', ids: rows.map(({ name }) => name) },
      { kind: 'operation', ids: operations().map(({ id }) => id) },
    ] as const;
    return [
      ...BLOCK_SCOPES.flatMap((kind) => owners.nearest(kind, q).map((id) => ({ kind, id }))),
      ...settings.flatMap(({ kind, ids }) => nearestOf(q, ids, MOST_NEAREST).map((id) => ({ kind, id }))),
    ].slice(0, MOST_NEAREST);
  }
}

function ownerOf(principal: Principal): NonNullable<Found['owner']> {
  return principal.account === undefined
    ? { scope: 'organization', id: principal.organization }
    : { scope: 'account', id: principal.account };
}

const NONE = Promise.resolve<readonly EndedRequest[]>([]);

function endedRequest(id: string, { atMs, status, operation, owner, reason }: EndedRequest): Found {
  const of = operation ? ` ${operation}` : '';
  const why = reason === null ? '' : `, ${reason}`;
  const by = owner === null ? '' : `, for ${owner}`;
  return { kind: 'request', id, text: `${new Date(atMs).toISOString()}${of}: ${status}${why}${by}` };
}

function planText(set: NonNullable<ReturnType<Limits['plans']['get']>>): string {
  return `sets ${Object.keys(set).join(', ') || 'no limit'}`;
}

/** `500 points per second, per account`. */
function limitText(row: LimitRow, limit: number | 'none' = 'none'): string {
  const { scope, counts } = row;
  const time = counts === 'concurrent' ? '' : ` ${limitTimeText(row)}`;
  const number = limit === 'none' ? 'no limit on' : shownCount(limit);
  return `${number} ${unitOf(counts)}${time}, per ${scope}`;
}

function addressText(address: string): string {
  return address.includes('/') && !address.endsWith('/64') ? 'Range of addresses' : 'Address';
}

/** Adds `GET /find?q=ID`. */
export function addFindRoute(app: FastifyInstance, finder: Finder): void {
  app.get<{ Querystring: { q?: string | string[] } }>('/find', async ({ query: { q } }, reply) => {
    const text = typeof q === 'string' ? q.trim() : '';
    if (text === '' || text.length > LONGEST_QUERY)
      return reply.code(400).send({ error: `q takes one id of at most ${LONGEST_QUERY} characters.` });
    return finder.find(text);
  });
}
