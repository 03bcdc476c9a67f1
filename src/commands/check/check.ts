import { findWarnings } from '../../config/checks/warnings.ts';
import type { Problem } from '../../config/problem.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { furtherRows } from '../../domain/limits/rows.ts';
import { counted } from '../../domain/shown.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { type Configuration, chargedOperations, readConfiguration } from '../../process/configuration.ts';
import { reviewCosts } from '../costs/review.ts';
import { print, printError, shownPlace } from '../print.ts';
import { warningLine } from '../terminal/error-lines.ts';

/**
 * `weir check`: reads everything that `start` would read, and throws all problems together. With `connect` it also tries
 * the connections in the settings, and fails if one of them fails.
 */
export async function check({ config, connect }: { config: string; connect?: boolean }): Promise<void> {
  const configuration = await readConfiguration(config, process.env);
  const { settings, operations, limits } = configuration;
  const warnings = [
    ...warningsOf(operations, settings.upstream.pathProfile),
    ...findWarnings(configuration, chargedOperations(operations, settings), process.env, Date.now()),
  ];
  for (const warning of warnings) printError(warningLine(warning));
  for (const line of publicLines(operations)) print(line);
  print([
    `${config} is `,
    { style: 'green', text: 'valid' },
    `: ${summaryOf(operations)}, ` +
      `overrides for ${counted(limits.accounts.size, 'account')} and ${counted(limits.organizations.size, 'organization')}, ` +
      furtherText(limits) +
      `${callersOf(configuration)}${warnings.length === 0 ? '' : `; warnings: ${warnings.length}`}.`,
  ]);
  // The clients of the store and of the identity providers are loaded only for this.
  if (connect) await (await import('./connections.ts')).tryConnections(configuration);
}

/** How many further limits and plans there are, where there are any. */
function furtherText({ rows, plans }: Limits): string {
  const further = furtherRows(rows).length;
  return further + plans.size === 0 ? '' : `further limits: ${further}, plans: ${plans.size}, `;
}

function callersOf({ settings, identities }: Configuration): string {
  const { kind } = settings.identity;
  const tokens = counted(identities.tokens.size, 'token');
  if (kind === 'static') return tokens;
  return kind === 'api-keys' ? `${tokens} and API keys` : `callers by ${kind}`;
}

/** Public operations need no token, so each of them is named. */
function publicLines(operations: readonly ListedOperation[]): readonly string[] {
  return operations
    .filter(({ access }) => access === 'public')
    .map(
      ({ method, path, cost }) => `public, without a token: ${method} ${path}${cost === 0 ? ' (free)' : ''}`,
    );
}

/** Remarks on the costs of operations. */
function warningsOf(
  operations: readonly ListedOperation[],
  profile: Parameters<typeof reviewCosts>[1],
): readonly Problem[] {
  const warnings: Problem[] = [];
  const overlapping: ListedOperation[] = [];
  for (const [operation, remarks] of reviewCosts(operations, profile)) {
    const { method, path, writtenAt } = operation;
    for (const { kind, text } of remarks) {
      if (kind === 'overlapping') overlapping.push(operation);
      else if (kind !== 'unpriced')
        warnings.push({
          source: shownPlace(writtenAt),
          path: '',
          message: `${method} ${path} is ${kind}: ${text}`,
        });
    }
  }
  return [...warnings, ...overlapWarning(overlapping)];
}

/** One line for all operations that overlap without an effect on what is charged. */
function overlapWarning(operations: readonly ListedOperation[]): readonly Problem[] {
  const [first] = operations;
  if (first === undefined) return [];
  const message = `${operations.length} operations share paths with another one that is charged alike`;
  const hint = 'only their validation can differ; weir operations lists them';
  return [{ source: shownPlace(first.writtenAt), path: '', message, hint }];
}

function summaryOf(operations: readonly ListedOperation[]): string {
  const count = (is: (operation: ListedOperation) => boolean) => operations.filter(is).length;
  const expensive = count(({ cost }) => cost > 1);
  const unpriced = count(({ costWrittenAt }) => costWrittenAt === undefined);
  const open = count(({ access }) => access === 'public');
  const unvalidated = count(({ validation }) => validation === 'none');
  const settled = count(({ settlement }) => settlement !== undefined);
  return (
    `${counted(operations.length, 'operation')} (${expensive} cost more than 1 point, ${unpriced} without a written cost, ` +
    `${open} public, ${unvalidated} unvalidated${settled === 0 ? '' : `, ${settled} with a settlement`})`
  );
}
