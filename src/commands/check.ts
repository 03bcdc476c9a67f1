import type { ListedOperation } from '../openapi/listed-operation.ts';
import { type Configuration, readConfiguration } from './configuration.ts';
import { reviewPrices } from './prices/price-review.ts';
import { shownPlace } from './prices/shown-place.ts';
import { print, printError } from './print.ts';

/** `weir check`: reads everything that `start` would read; a problem anywhere is thrown with all the others. */
export async function check({ config }: { config: string }): Promise<void> {
  const configuration = await readConfiguration(config, process.env);
  const { settings, operations, limits } = configuration;
  const warnings = warningsOf(operations, settings.upstream.pathProfile);
  for (const warning of warnings) printError(warning);
  print(
    `${config} is sound: ${summaryOf(operations)}, ` +
      `limits for ${limits.accounts.size} accounts and ${limits.organizations.size} organizations of their own, ` +
      `${callersOf(configuration)}${warnings.length === 0 ? '' : `; warnings: ${warnings.length}`}.`,
  );
}

function callersOf({ settings, identities }: Configuration): string {
  const { kind } = settings.identity;
  return kind === 'static' ? `${identities.tokens.size} tokens` : `callers by ${kind}`;
}

/** Nothing that keeps the gateway from running, but most likely not what was meant. */
function warningsOf(
  operations: readonly ListedOperation[],
  profile: Parameters<typeof reviewPrices>[1],
): readonly string[] {
  const warnings: string[] = [];
  for (const [{ method, path, writtenAt }, remarks] of reviewPrices(operations, profile)) {
    for (const { kind, text } of remarks) {
      if (kind !== 'unpriced')
        warnings.push(`${shownPlace(writtenAt)}: warning: ${method} ${path} is ${kind}: ${text}`);
    }
  }
  return warnings;
}

function summaryOf(operations: readonly ListedOperation[]): string {
  const count = (is: (operation: ListedOperation) => boolean) => operations.filter(is).length;
  const dear = count(({ cost }) => cost > 1);
  const unpriced = count(({ costWrittenAt }) => costWrittenAt === undefined);
  const unvalidated = count(({ validation }) => validation === 'none');
  return (
    `${operations.length} operations (${dear} cost more than 1 point, ${unpriced} without a written cost, ` +
    `${unvalidated} unvalidated)`
  );
}
