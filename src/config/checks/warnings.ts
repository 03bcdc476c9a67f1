import type { Limits, Overrides } from '../../domain/limits/limits.ts';
import { concurrentRows, isInPolicy, MOST_HEADER_ITEMS } from '../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../domain/limits/scopes.ts';
import { type Identities, ownersIn } from '../files/identities/parse-identities.ts';
import { formatPath, type Problem } from '../problem.ts';
import { type Environment, unknownVariables } from '../reader/environment.ts';
import { asNode } from '../reader/schema-node.ts';
import { didYouMean } from '../reader/value-messages.ts';
import { type Settings, settingsSchema } from '../settings/settings.ts';
import { type CostedOperation, findLowShadows, type LimitPlaces, lowShadowWarning } from './costs.ts';
import { settingsWarnings } from './settings-warnings.ts';
import { findUnusedPoints, unusedPointsWarning } from './unused-points.ts';

/** A configuration without problems. */
interface ValidConfiguration {
  readonly settings: Settings;
  readonly limits: Limits;
  readonly identities: Identities;
  readonly credentials: readonly ({ readonly identities: Identities } | undefined)[];
  readonly operations: readonly CostedOperation[];
  readonly files: {
    readonly limits: LimitPlaces & { readonly isBlank: boolean };
    /** Undefined if callers and Accounts do not come from a file. */
    readonly identities: IdentitiesFile | undefined;
    /** Of each of the `credentials`; undefined for those without an `identity` of their own. */
    readonly credentials: readonly ({ readonly identities: IdentitiesFile | undefined } | undefined)[];
    readonly operations: { readonly warnings: readonly Problem[] };
    readonly descriptors?: { readonly warnings: readonly Problem[] } | undefined;
    readonly settings: { readonly file: string };
  };
}

interface IdentitiesFile {
  readonly file: string;
}

/** How many warnings of one kind are worth reading. */
const MAX_OF_A_KIND = 10;

/**
 * What keeps no gateway from running, but is most likely not what was meant.
 *
 * @param charged the operations, and what unlisted requests cost
 */
export function findWarnings(
  configuration: ValidConfiguration,
  charged: readonly CostedOperation[],
  env: Environment,
  nowMs: number,
): readonly Problem[] {
  const { settings, limits, operations, files } = configuration;
  const warnings = [
    ...unknownVariables(asNode(settingsSchema), env),
    ...settingsWarnings(settings, files.settings.file, env),
    ...emptyLimits(configuration),
    ...emptyIdentities(configuration),
    ...unknownPlans(configuration),
    ...files.operations.warnings,
    ...capped(files.descriptors?.warnings ?? [], (warning) => warning),
    ...crowdedHeaders(configuration),
    ...unseenEnds(configuration),
    ...capped(findLowShadows(charged, limits), (found) => lowShadowWarning(found, files.limits)),
    ...capped(findUnusedPoints(charged, limits), (found) => unusedPointsWarning(found, files.limits)),
  ];
  if (operations.length === 0 && settings.operations.unlisted === 'reject') {
    const message = 'lists no operation, and unlisted is reject: every request gets a 404';
    warnings.push({ source: files.settings.file, path: 'operations', message });
  }
  for (const section of OVERRIDE_SECTIONS) {
    warnings.push(...unknownOwners(configuration, section), ...expired(configuration, section, nowMs));
  }
  return warnings;
}

/** Operations with more limits than the headers name. */
function crowdedHeaders({ limits, operations, files }: ValidConfiguration): readonly Problem[] {
  const crowded = operations.find(
    (operation) => limits.rows.filter((row) => isInPolicy(row, operation)).length > MOST_HEADER_ITEMS,
  );
  if (crowded === undefined) return [];
  const message = `the headers of ${crowded.id} name the ${MOST_HEADER_ITEMS} limits that are nearest to their limit, because more apply`;
  return [{ ...files.limits.locate(['limits']), path: 'limits', message }];
}

/** Limits that do not apply where other proxies ask for decisions. */
function unseenEnds({ settings: { decisions }, limits, files }: ValidConfiguration): readonly Problem[] {
  if ((decisions.port ?? decisions.socketPath) === undefined) return [];
  return capped(concurrentRows(limits.rows), ({ name }) => ({
    ...files.limits.locate(['limits', name]),
    path: formatPath(['limits', name]),
    message:
      'applies to decisions only if programs hold them, because other proxies do not report the end of a request',
  }));
}

function emptyLimits({ files: { limits } }: ValidConfiguration): readonly Problem[] {
  if (!limits.isBlank) return [];
  const hint = 'write {} if this is meant';
  return [{ source: limits.fileOf([]), path: '', message: "is empty: Weir's defaults apply", hint }];
}

function emptyIdentities({ settings, identities, files }: ValidConfiguration): readonly Problem[] {
  const source = files.identities?.file;
  if (source === undefined) return [];
  const { kind } = settings.identity;
  if (kind === 'static' && identities.tokens.size === 0) {
    return [{ source, path: 'tokens', message: 'is empty: every request that needs a token gets a 401' }];
  }
  if (identities.accounts.size > 0) return [];
  return [{ source, path: 'accounts', message: 'is empty: every request that needs a token gets a 403' }];
}

/** Plans of Accounts in the identities file that the limits file does not have. */
function unknownPlans({ limits, identities, files }: ValidConfiguration): readonly Problem[] {
  const source = files.identities?.file;
  if (source === undefined) return [];
  const unknown = [...identities.accounts].filter(
    ([, { plan }]) => plan !== undefined && !limits.plans.has(plan),
  );
  return capped(unknown, ([id, { plan = '' }]) => ({
    source,
    path: formatPath(['accounts', id, 'plan']),
    message: `the limits have no plan ${plan}: the defaults apply`,
    hint: didYouMean(plan, [...limits.plans.keys()]),
  }));
}

/** Overrides of Accounts, Organizations and principals that no identities file has, where all come from such files. */
function unknownOwners(configuration: ValidConfiguration, section: OverrideSection): readonly Problem[] {
  const { limits, files } = configuration;
  const providers = providersOf(configuration);
  const known = ownersIn(
    section,
    providers.map(({ identities }) => identities),
  );
  if (known === undefined || !providers.every((one) => listsAll(one, section))) return [];
  const sources = [...new Set(providers.map(({ file }) => file?.file))].join(' or ');
  const unknown = [...limits[section].keys()].filter((id) => !known.has(id));
  return capped(unknown, (id) => ({
    ...files.limits.locate([section, id]),
    path: formatPath([section, id]),
    message: `is not in ${sources}`,
    hint: didYouMean(id, [...known]),
  }));
}

/** What says who calls: the `identity` section, or one of the `credentials`. */
interface Provider {
  readonly settings: Settings['identity'];
  readonly identities: Identities;
  readonly file: IdentitiesFile | undefined;
}

function providersOf({ settings, identities, credentials, files }: ValidConfiguration): readonly Provider[] {
  const own = settings.credentials.flatMap((one, index) => {
    const content = credentials[index];
    if (one.identity === undefined || content === undefined) return [];
    const file = files.credentials[index]?.identities;
    return [{ settings: one.identity, identities: content.identities, file }];
  });
  return [{ settings: settings.identity, identities, file: files.identities }, ...own];
}

/** Whether a file has every owner of a section. With a directory, it has the Accounts, and the tokens say who the principals are. */
function listsAll({ settings, file }: Provider, section: OverrideSection): boolean {
  return file !== undefined && (section !== 'principals' || !('directory' in settings));
}

/** Overrides that have no effect any more. */
function expired(
  { limits, files }: ValidConfiguration,
  section: OverrideSection,
  nowMs: number,
): readonly Problem[] {
  const over = [...limits[section]].filter(([, overrides]) => endOf(overrides) <= nowMs);
  return capped(over, ([id, overrides]) => ({
    ...files.limits.locate([section, id]),
    path: formatPath([section, id]),
    message: `expired at ${new Date(endOf(overrides)).toISOString()}: the defaults apply`,
  }));
}

/** When the first override of one owner expires, in Unix milliseconds. */
function endOf({ plan, limits }: Overrides): number {
  let endMs = plan?.untilMs ?? Number.POSITIVE_INFINITY;
  for (const { untilMs } of Object.values(limits)) endMs = Math.min(endMs, untilMs ?? endMs);
  return endMs;
}

function capped<T>(found: readonly T[], describe: (one: T) => Problem): readonly Problem[] {
  const warnings = found.slice(0, MAX_OF_A_KIND).map(describe);
  const [first] = warnings;
  const more = found.length - MAX_OF_A_KIND;
  if (more <= 0 || first === undefined) return warnings;
  return [...warnings, { source: first.source, path: '', message: `${more} more of this kind` }];
}
