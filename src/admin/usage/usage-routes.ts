import type { FastifyInstance } from 'fastify';
import { SCOPE_NAMES, type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
import { networkOf } from '../../domain/network.ts';
import type { PostgresJournal } from '../../store/journal/postgres.ts';
import { notAnAddress } from '../action.ts';
import { orRefusal } from '../facts/fact-api.ts';
import { readUsage, type UsageSources } from './owner-usage.ts';
import { answerPast } from './past-routes.ts';

/** Adds `/usage/accounts/{id}`, and the same for organizations, persons and addresses. */
export function addUsageRoutes(
  app: FastifyInstance,
  sources: UsageSources & { readonly past: PostgresJournal | undefined },
): void {
  for (const scope of SCOPE_NAMES) {
    app.get<{
      Params: { id: string };
      Querystring: {
        readonly organization?: string | string[];
        readonly account?: string | string[];
        /** `no`: the sums cover the replicas that have reported. */
        readonly wait?: string | string[];
        /** A past period instead of the present. */
        readonly period?: string | string[];
        readonly timeZone?: string | string[];
        readonly startsOn?: string | string[];
      };
    }>(`/usage/${scopeNamed(scope).plural}/:id`, async (request, reply) => {
      const { organization, account, wait, period, timeZone, startsOn } = request.query;
      const { id: named } = request.params;
      const id = scope === 'address' ? networkOf(named) : named;
      if (id === undefined) return reply.code(400).send({ error: notAnAddress(named) });
      if (period !== undefined) {
        const asked = { period: `${period}`, timeZone: first(timeZone), startsOn: first(startsOn) };
        return answerPast(reply, sources.past, sources.owners, { scope, id }, asked);
      }
      const query = {
        scope,
        id,
        organization: single(organization),
        account: single(account),
        waits: single(wait) !== 'no',
      };
      return orRefusal(reply, async () => {
        const usage = await readUsage(query, sources);
        return usage ?? reply.code(404).send({ error: unknownText(scope) });
      });
    });
  }
}

/** The first value of a parameter; undefined for an empty one. */
function single(value: string | string[] | undefined): string | undefined {
  return first(value) || undefined;
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function unknownText(scope: ScopeName): string {
  const { noun, isPerPrincipal } = scopeNamed(scope);
  return isPerPrincipal
    ? `This replica does not know the ${noun}: name its Account with --account, or ?account=.`
    : 'This replica does not know the Account: name its Organization with --organization, or ?organization=.';
}
