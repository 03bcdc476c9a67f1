import type { FastifyInstance } from 'fastify';
import type { Limits } from '../../domain/limits/limits.ts';
import { countedBy } from '../../domain/limits/rows.ts';
import { settlementText } from '../../domain/settlement/settlement-text.ts';
import type { PricedOperation } from '../find/finder.ts';

/** A limit of the files, as an operator sees it. */
export type ShownRow = ReturnType<typeof shownRows>[number];

/** The limits that the files have for owners without a limit of their own. */
function shownRows({ rows, defaults }: Limits) {
  return rows.map((row) => ({
    bucket: row.name,
    /** What is counted, and in which window. */
    ...countedBy(row),
    /** Null for none. */
    limit: limitOf(defaults[row.name]?.limit),
    /** A shadow limit refuses nothing. */
    shadow: defaults[row.name]?.shadow ?? false,
  }));
}

function limitOf(limit: number | 'none' | undefined): number | null {
  return typeof limit === 'number' ? limit : null;
}

/** A plan as an operator sees it. */
export type ShownPlan = ReturnType<typeof shownPlans>[number];

/** The plans of the files, and what each sets. */
function shownPlans({ plans }: Limits) {
  return [...plans].map(([plan, limits]) => ({
    plan,
    /** Null for none. */
    limits: Object.entries(limits).map(([bucket, { limit, shadow }]) => ({
      bucket,
      limit: limitOf(limit),
      shadow,
    })),
  }));
}

/** An operation as an operator sees it. */
export type ShownOperation = ReturnType<typeof shownOperations>[number];

/** The operations in force and their costs, the most expensive first. */
function shownOperations(operations: readonly PricedOperation[]) {
  return operations
    .map((one) => {
      const { id, method, path, cost, kind, access } = one;
      return {
        id,
        method,
        path,
        cost,
        kind,
        access,
        /** What it reserves and how it is settled, in words; null if its cost is final. */
        settlementText: settlementText(one) ?? null,
      };
    })
    .sort((a, b) => b.cost - a.cost || a.path.localeCompare(b.path) || a.method.localeCompare(b.method));
}

/** Adds `GET /limits`, `GET /plans` and `GET /operations`: what the files set. */
export function addLimitRoutes(
  app: FastifyInstance,
  limits: () => Limits,
  operations: () => readonly PricedOperation[],
): void {
  app.get('/limits', async () => shownRows(limits()));
  app.get('/plans', async () => shownPlans(limits()));
  app.get('/operations', async () => shownOperations(operations()));
}
