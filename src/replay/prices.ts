import { resolve } from 'node:path';
import { parse } from '../config/reader/parse.ts';
import { operationsSchema } from '../config/settings/operations.ts';
import type { Settings } from '../config/settings/settings.ts';
import { upstreamSchema } from '../config/settings/upstream.ts';
import { OperationTable } from '../gateway/match.ts';
import { normalise } from '../gateway/normalise.ts';
import { Refusal } from '../gateway/problems.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { OperationFiles } from '../openapi/operation-files.ts';
import type { PriceOf } from './input/entry.ts';

/** The settings of weir.yaml that a replay uses. */
export type PriceSettings = Partial<Pick<Settings, 'operations' | 'upstream'>>;

/**
 * The operations of an OpenAPI document, by default that of the settings. Undefined if neither is given. Throws a
 * ConfigError with all problems.
 */
export async function readPrices(
  document: string | undefined,
  { operations }: PriceSettings,
  settingsFile: string,
): Promise<readonly ListedOperation[] | undefined> {
  if (document === undefined) {
    return operations === undefined ? undefined : new OperationFiles(operations, settingsFile).load();
  }
  const openapi = resolve(document);
  const byDefault = parse(operationsSchema, JSON.stringify({ openapi }), '--operations').value;
  return new OperationFiles({ ...byDefault, ...operations, openapi, list: [] }, settingsFile).load();
}

/** The operation that the gateway would match a request line to. */
export function priceFinder(
  operations: readonly ListedOperation[],
  { operations: settings, upstream }: PriceSettings,
): PriceOf {
  const pathProfile = upstream?.pathProfile ?? parse(upstreamSchema, '{}', 'defaults').value.pathProfile;
  const prices = new OperationTable(
    operations,
    settings?.unlisted ?? 'charge',
    pathProfile.case,
    pathProfile.trailingSlash,
  );
  return (method, target) => {
    const normalised = normalise(target, pathProfile, (path) => prices.declaresSlash(method, path));
    if (normalised instanceof Refusal) return undefined;
    const operation = prices.find(method, normalised.path);
    const isCharged = operation !== 'free' && !(operation instanceof Refusal) && operation.cost > 0;
    return isCharged ? operation : undefined;
  };
}
