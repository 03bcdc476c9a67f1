import { resolve } from 'node:path';
import { parse } from '../config/reader/parse-file.ts';
import { operationsSchema } from '../config/settings/operations-settings.ts';
import type { Settings } from '../config/settings/settings.ts';
import { upstreamSchema } from '../config/settings/upstream-settings.ts';
import { Refusal } from '../domain/problems.ts';
import type { ListedOperation } from '../operations/listed-operation.ts';
import { OperationFiles } from '../operations/operation-files.ts';
import { OperationTable, unlistedPolicy } from '../stages/match.ts';
import { normalise } from '../stages/normalise.ts';
import type { OperationFinder } from './input/entry.ts';

/**
 * The operations of an OpenAPI document, by default the settings' document. Undefined if neither is given. Throws a
 * ConfigError with all problems.
 */
export async function readCosts(
  document: string | undefined,
  { operations }: Partial<Settings>,
  settingsFile: string,
): Promise<readonly ListedOperation[] | undefined> {
  if (document === undefined) {
    return operations === undefined ? undefined : new OperationFiles(operations, settingsFile).load();
  }
  const openapi = resolve(document);
  const byDefault = parse(operationsSchema, JSON.stringify({ openapi }), '--operations').value;
  return new OperationFiles({ ...byDefault, ...operations, openapi, list: [] }, settingsFile).load();
}

/** Finds the operation that the gateway would match a request line to. */
export function operationFinder(
  operations: readonly ListedOperation[],
  { operations: settings, upstream, usage }: Partial<Settings>,
): OperationFinder {
  const pathProfile = upstream?.pathProfile ?? parse(upstreamSchema, '{}', 'defaults').value.pathProfile;
  const table = new OperationTable(
    operations,
    settings === undefined ? 'charge' : unlistedPolicy(settings),
    pathProfile.case,
    pathProfile.trailingSlash,
  );
  return {
    find(method, target) {
      const normalised = normalise(target, pathProfile, (folded) => table.servesSlash(method, folded));
      // The gateway itself answers what is asked of the usage path.
      if (normalised instanceof Refusal || normalised.path === usage?.path) return undefined;
      const operation = table.find(method, normalised.path, normalised.folded);
      const isCharged = operation !== 'free' && !(operation instanceof Refusal) && operation.cost > 0;
      return isCharged ? operation : undefined;
    },
    named: (id) => table.named(id),
  };
}
