import type { FastifyInstance, FastifyReply } from 'fastify';
import { isScopeName } from '../../domain/limits/scopes.ts';
import { networkOf } from '../../domain/network.ts';
import { WINDOWS, type Window } from '../../observe/usage/windows.ts';
import type { RefusedOwner } from '../fleet/refusals.ts';
import type { FleetFeed } from './feed.ts';

interface Query {
  readonly window?: string;
  readonly scope?: string;
  readonly id?: string;
}

/**
 * Adds `/fleet`, the state of all replicas, and `/fleet/events`, the same once a second as server-sent events; with
 * `?scope=account&id=acct_1`, the last refusals of that owner come as well.
 */
export function addFleetRoutes(app: FastifyInstance, feed: FleetFeed): void {
  app.get<{ Querystring: Query }>('/fleet', async ({ query }, reply) => {
    const window = windowOf(query);
    return window === undefined ? refuseWindow(reply) : feed.snapshot(window);
  });
  app.get<{ Querystring: Query }>('/fleet/events', async ({ query }, reply) => {
    const window = windowOf(query);
    if (window === undefined) return refuseWindow(reply);
    if (!feed.hasRoom) return reply.code(503).send({ error: 'Too many consoles are open at this replica.' });
    const headers = { ...reply.getHeaders(), 'content-type': 'text/event-stream', connection: 'close' };
    reply.hijack();
    reply.raw.writeHead(200, headers as Record<string, string>);
    void feed.stream(reply.raw, { window, owner: ownerOf(query) });
    return reply;
  });
  app.addHook('preClose', async () => feed.close());
}

function windowOf({ window: asked = '10s' }: Query): Window | undefined {
  return WINDOWS.find((one) => one === asked);
}

function refuseWindow(reply: FastifyReply): FastifyReply {
  return reply.code(400).send({ error: `window takes ${WINDOWS.join(', ')}.` });
}

function ownerOf({ scope, id: named }: Query): RefusedOwner | undefined {
  if (named === undefined || scope === undefined || !isScopeName(scope)) return undefined;
  const id = scope === 'address' ? networkOf(named) : named;
  return id === undefined ? undefined : { scope, id };
}
