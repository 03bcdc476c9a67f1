import { raisedLimit } from '../../admin/facts/raised-limits.ts';
import { costliestByRow } from '../../config/checks/costs.ts';
import { findWarnings } from '../../config/checks/warnings.ts';
import type { Problem } from '../../config/problem.ts';
import { identitySections } from '../../config/settings/credentials.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { furtherRows, isRecorded } from '../../domain/limits/rows.ts';
import { counted } from '../../domain/shown.ts';
import { readFacts } from '../../facts/fact-record.ts';
import { LIVE_LIMITS, LiveLimits } from '../../facts/live-limits.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { type Configuration, chargedOperations, readConfiguration } from '../../process/configuration.ts';
import { CommandError } from '../../process/failure.ts';
import { openShared } from '../../store/open-store.ts';
import { reviewCosts } from '../costs/review.ts';
import { print, printError, shownPlace } from '../print.ts';
import { warningLine } from '../terminal/error-lines.ts';
import { tryJournal } from './try-journal.ts';
import { tryProviders } from './try-providers.ts';
import { tryStore } from './try-store.ts';
import { tryUpstreams } from './try-upstreams.ts';

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
  if (!connect) return;
  await warnOfLiveLimits(configuration);
  await tryConnections(settings, longestInRedis(configuration));
}

/** Warns of live limits at the gateways that are below a cost of these files. A store that does not answer is reported later. */
async function warnOfLiveLimits({ settings, operations, limits }: Configuration): Promise<void> {
  const live = await readFacts(openShared(settings.store), LIVE_LIMITS).catch(() => undefined);
  const known = new LiveLimits();
  const nowMs = live?.clock.nowMs() ?? 0;
  for (const fact of live?.facts ?? []) known.add(fact, nowMs);
  const costliest = costliestByRow(chargedOperations(operations, settings), limits.rows);
  for (const one of known.inForce(nowMs)) {
    const raised = raisedLimit(one, { costliest: (row) => costliest.get(row) });
    if (raised === undefined) continue;
    const { bucket, inForce, about } = raised;
    const message = `${about}: ${inForce} will be in force`;
    printError(warningLine({ source: 'weir limit list', path: bucket, message }));
  }
}

/** The longest window whose counts only Redis has, in seconds: a journal puts back what it records. */
function longestInRedis({ settings: { journal }, limits: { rows } }: Configuration): number {
  const forgotten = journal.url === undefined ? rows : rows.filter((row) => !isRecorded(row));
  return Math.max(0, ...forgotten.map(({ windowSeconds }) => windowSeconds));
}

/** How many further limits and plans there are, where there are any. */
function furtherText({ rows, plans }: Limits): string {
  const further = furtherRows(rows).length;
  return further + plans.size === 0 ? '' : `further limits: ${further}, plans: ${plans.size}, `;
}

const COLOURS = { ok: 'green', warning: 'yellow', failed: 'red' } as const;

/** Prints a line for each connection. */
async function tryConnections(
  { listen, store, journal, upstream, identity, credentials }: Settings,
  longestSeconds: number,
): Promise<void> {
  const providers = identitySections({ identity, credentials });
  const trials = [
    tryStore(store, longestSeconds, journal.url !== undefined),
    ...(journal.url === undefined ? [] : [tryJournal(journal.url, store.keyPrefix)]),
    ...(listen.port === 'off' ? [] : tryUpstreams(upstream)),
    ...providers.flatMap((one) => tryProviders(one, upstream.url)),
  ];
  let failed = 0;
  for (const trial of trials) {
    const { name, outcome, text } = await trial;
    if (outcome === 'failed') failed++;
    const label = outcome === 'ok' ? [] : [{ style: COLOURS[outcome], text: outcome }, ': '];
    print([`${name}: `, ...label, text]);
  }
  if (failed > 0) throw new CommandError(`${failed} of ${counted(trials.length, 'connection')} failed.`);
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
