import { raisedLimit } from '../../admin/facts/raised-limits.ts';
import { costliestByRow } from '../../config/checks/costs.ts';
import { identitySections } from '../../config/settings/credentials.ts';
import { isRecorded } from '../../domain/limits/rows.ts';
import { counted } from '../../domain/shown.ts';
import { readFacts } from '../../facts/fact-record.ts';
import { LIVE_LIMITS, LiveLimits } from '../../facts/live-limits.ts';
import { type Configuration, chargedOperations } from '../../process/configuration.ts';
import { CommandError } from '../../process/failure.ts';
import { openShared } from '../../store/open-store.ts';
import { print, printError } from '../print.ts';
import { warningLine } from '../terminal/error-lines.ts';
import { tryJournal } from './try-journal.ts';
import { tryProviders } from './try-providers.ts';
import { tryStore } from './try-store.ts';
import { tryUpstreams } from './try-upstreams.ts';

const COLOURS = { ok: 'green', warning: 'yellow', failed: 'red' } as const;

/** Tries each connection in the settings, and prints a line for each. Throws if one of them fails. Warns of live limits as well. */
export async function tryConnections(configuration: Configuration): Promise<void> {
  await warnOfLiveLimits(configuration);
  const { listen, store, journal, upstream, identity, credentials } = configuration.settings;
  const providers = identitySections({ identity, credentials });
  const trials = [
    tryStore(store, longestInRedis(configuration), journal.url !== undefined),
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
