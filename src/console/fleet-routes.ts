import type { FastifyInstance, FastifyReply } from 'fastify';
import { isRange, RANGES } from '../admin/fleet/ranges.ts';
import type { RefusedOwner } from '../admin/fleet/refusals.ts';
import { isScopeName, SCOPE_NAMES } from '../domain/limits/scopes.ts';
import { networkOf } from '../domain/network.ts';
import { WINDOWS } from '../observe/usage/windows.ts';
import type { FleetFeed } from './feed.ts';

interface FleetQuery {
  readonly window?: string;
  readonly range?: string;
  readonly scope?: string;
  readonly id?: string;
  readonly only?: string;
}

const CHANGES = 'changes';

/**
 * Adds `/fleet?window=10s&range=1m`, the state of all replicas, and `/fleet/events`, the same once a second as server-sent events; with
 * `?scope=account&id=acct_1`, the last refusals of that owner come as well, and with `&only=changes`, the fleet's changes alone instead
 * of its state.
 */
export function addFleetRoutes(app: FastifyInstance, feed: FleetFeed): void {
  app.get<{ Querystring: FleetQuery }>('/fleet', async ({ query }, reply) => {
    const shown = shownOf(query);
    return shown === undefined ? refuse(reply) : feed.snapshot(shown);
  });
  app.get<{ Querystring: FleetQuery }>('/fleet/events', async ({ query }, reply) => {
    const shown = shownOf(query);
    if (shown === undefined) return refuse(reply);
    if (query.scope !== undefined && !isScopeName(query.scope))
      return reply.code(400).send({ error: `scope takes ${SCOPE_NAMES.join(', ')}.` });
    if (!feed.hasRoom) return reply.code(503).send({ error: 'Too many consoles are open at this replica.' });
    const headers = { ...reply.getHeaders(), 'content-type': 'text/event-stream', connection: 'close' };
    reply.hijack();
    reply.raw.writeHead(200, headers as Record<string, string>);
    void feed.stream(reply.raw, { ...shown, owner: ownerOf(query) });
    return reply;
  });
  app.addHook('preClose', async () => feed.close());
}

function shownOf({ window: asked = '10s', range = '1m', only }: FleetQuery) {
  const window = WINDOWS.find((one) => one === asked);
  if (window === undefined || !isRange(range) || (only !== undefined && only !== CHANGES)) return undefined;
  return { window, range, hasOnlyChanges: only === CHANGES };
}

function refuse(reply: FastifyReply): FastifyReply {
  const ranges = Object.keys(RANGES).join(', ');
  const error = `window takes ${WINDOWS.join(', ')}, range ${ranges}, and only ${CHANGES}.`;
  return reply.code(400).send({ error });
}

function ownerOf({ scope, id: named }: FleetQuery): RefusedOwner | undefined {
  if (named === undefined || scope === undefined || !isScopeName(scope)) return undefined;
  const id = scope === 'address' ? networkOf(named) : named;
  return id === undefined ? undefined : { scope, id };
}
