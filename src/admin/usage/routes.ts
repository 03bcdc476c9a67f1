import type { FastifyInstance } from 'fastify';
import { SCOPES, type ScopeName } from '../../domain/buckets.ts';
import { readUsage, type UsageSources } from './usage.ts';

interface Query {
  readonly organization?: string | string[];
  readonly account?: string | string[];
}

/** Adds `/usage/accounts/{id}`, `/usage/persons/{id}` and `/usage/organizations/{id}`. */
export function addUsageRoutes(app: FastifyInstance, sources: UsageSources): void {
  for (const scope of Object.keys(SCOPES) as ScopeName[]) {
    app.get<{ Params: { id: string }; Querystring: Query }>(
      `/usage/${scope}s/:id`,
      async (request, reply) => {
        const { organization, account } = request.query;
        const query = {
          scope,
          id: request.params.id,
          organization: single(organization),
          account: single(account),
        };
        const usage = await readUsage(query, sources);
        return usage ?? reply.code(404).send({ error: unknownText(scope) });
      },
    );
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value || undefined;
}

function unknownText(scope: ScopeName): string {
  return scope === 'person'
    ? 'This replica does not know the Person: name its Account with ?account=.'
    : 'This replica does not know the Account: name its Organization with ?organization=.';
}
