import { isIP } from 'node:net';
import { canonicalAddress, rangeBase } from '../../domain/network.ts';
import { formatPath, type Problem } from '../problem.ts';
import type { Environment } from '../reader/environment.ts';
import { readText } from '../reader/read-text.ts';
import { isMapping } from '../reader/schema-node.ts';
import { readYaml } from '../reader/yaml-text.ts';
import { identitySections } from '../settings/credentials.ts';
import { isPrivateAddress } from '../settings/notifications-settings.ts';
import type { PortTokenSettings } from '../settings/port-token.ts';
import { isLoopback } from '../settings/section.ts';
import type { Settings } from '../settings/settings.ts';

/** Places a message at a setting of the file. */
type Locate = (path: readonly string[], message: string) => Problem;

/** The settings that are valid, but most likely not what was meant. */
export function settingsWarnings(settings: Settings, file: string, env: Environment): readonly Problem[] {
  const yaml = readYaml(readText(file, ''), file);
  const [value, lineOf] = 'lineOf' in yaml ? [yaml.value, yaml.lineOf] : [undefined, () => undefined];
  const at: Locate = (path, message) => {
    const line = lineOf(path);
    return { source: file, ...(line !== undefined && { line }), path: formatPath(path), message };
  };
  const warnings: Problem[] = [];
  const written = isMapping(value) ? value : {};
  if (Object.keys(written).length === 0)
    warnings.push({ source: file, path: '', message: 'is empty: every setting has its default' });
  const { upstream } = written;
  const hasUpstream = (isMapping(upstream) && upstream.url !== undefined) || env.WEIR_UPSTREAM_URL;
  if (!hasUpstream && (settings.listen.port !== 'off' || findsKeysThere(settings)))
    warnings.push(at(['upstream', 'url'], `is not set: requests go to ${settings.upstream.url}`));
  const { host, token, tokenFile } = settings.admin;
  if (!isLoopback(host) && (token ?? tokenFile) === undefined) {
    const message = `is ${host}, and there is no admin.tokenFile: everything but metrics, health and the page of the console gets a 403`;
    warnings.push(at(['admin', 'host'], message));
  }
  warnings.push(...secretsTwice(settings, at));
  warnings.push(...unusedUsage(settings, at), ...unknownReplicas(settings, written, env, at));
  warnings.push(...ignoredParts(settings.store, at), ...privateReceiver(settings, at));
  warnings.push(...placeholders(settings, [], at), ...unknownTls(settings.journal, at));
  warnings.push(...rangeWarnings(settings.listen.trustedProxies, ['listen', 'trustedProxies'], at));
  warnings.push(...rangeWarnings(settings.decisions.trusted, ['decisions', 'trusted'], at));
  return warnings;
}

/** Secrets that are set twice: to replace the one that has no effect would replace nothing. */
function secretsTwice(settings: Settings, at: Locate): readonly Problem[] {
  const { admin, decisions, notifications } = settings;
  const isTwice = ({ token, tokenFile }: PortTokenSettings) => token !== undefined && tokenFile !== undefined;
  const unused: [section: string, setting: string, used: string][] = [];
  if (isTwice(admin)) unused.push(['admin', 'tokenFile', 'token']);
  if (isTwice(decisions)) unused.push(['decisions', 'tokenFile', 'token']);
  if (notifications.secret !== undefined && notifications.secretFile !== undefined)
    unused.push(['notifications', 'secret', 'secretFile']);
  return unused.map(([section, setting, used]) =>
    at([section, setting], `has no effect: ${section}.${used} is set as well`),
  );
}

/** The path where callers see their own limits, without a port to serve it. */
function unusedUsage({ usage, listen }: Settings, at: Locate): readonly Problem[] {
  if (usage.path === undefined || listen.port !== 'off') return [];
  return [at(['usage', 'path'], 'has no effect: there is no port for clients')];
}

/** Limits that replicas share, without the number of replicas for those that start while the store is away. */
function unknownReplicas(
  { store: { kind, onStoreFailure } }: Settings,
  { store }: Readonly<Record<string, unknown>>,
  env: Environment,
  at: Locate,
): readonly Problem[] {
  const isSet =
    (isMapping(store) && store.expectedReplicas !== undefined) || env.WEIR_STORE_EXPECTED_REPLICAS;
  if (kind === 'memory' || onStoreFailure !== 'share' || isSet) return [];
  const message =
    'is not set: each replica that starts while the store is away admits the whole of every limit';
  return [at(['store', 'expectedReplicas'], message)];
}

/** Parts of the URLs of Sentinels and nodes that Redis or Weir does not use. */
function ignoredParts(store: Settings['store'], at: Locate): readonly Problem[] {
  if (store.kind !== 'sentinel' && store.kind !== 'cluster') return [];
  const [key, urls] = store.kind === 'sentinel' ? ['sentinels', store.sentinels] : ['nodes', store.nodes];
  const [first, ...others] = urls.map((url) => new URL(url));
  const warnings: Problem[] = [];
  if (urls.some((url) => Number(new URL(url).pathname.slice(1)) > 0))
    warnings.push(at(['store', key], 'the number of a database has no effect: it is always 0'));
  const isFirst = ({ username, password }: URL) =>
    username === first?.username && password === first?.password;
  if (!others.every(isFirst))
    warnings.push(at(['store', key], 'the user and password of the first URL are used for all'));
  return warnings;
}

/** A receiver of notifications that no call may reach. Names are looked up at each call. */
function privateReceiver({ notifications: { url, allowPrivate } }: Settings, at: Locate): readonly Problem[] {
  if (url === undefined || allowPrivate) return [];
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  const isPrivate = isIP(host) !== 0 && isPrivateAddress(host);
  if (!isPrivate && !isLoopback(host)) return [];
  const message =
    'is at a private address, so nothing is sent: set notifications.allowPrivate for a receiver in your own network';
  return [at(['notifications', 'url'], message)];
}

/** A value such as `$TOKEN`, or one that has `${TOKEN}` in it, as the password in a URL. */
const PLACEHOLDER = /^\$\w+$|\$\{\w/;

/** Values that other programs would replace: everyone could guess such a secret. */
function placeholders(value: unknown, path: readonly string[], at: Locate): readonly Problem[] {
  if (typeof value === 'string' && PLACEHOLDER.test(value)) {
    return [at(path, 'is used as it is written: docs/configuration.md has the variable that sets it')];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => placeholders(one, [...path, key], at));
}

/** What PostgreSQL's client reads of a URL about TLS. */
const TLS_PARAMETERS = ['ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation'];
const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];

/** Parameters of the journal's URL that set up TLS otherwise than they seem to. The client ignores the ones that it does not know. */
function unknownTls({ url }: Settings['journal'], at: Locate): readonly Problem[] {
  const query = url === undefined ? new URLSearchParams() : new URL(url).searchParams;
  const messages = [...query.keys()]
    .filter((name) => /^ssl/i.test(name) && !TLS_PARAMETERS.includes(name))
    .map((name) => `the parameter ${name} has no effect: expected one of ${TLS_PARAMETERS.join(', ')}`);
  const mode = query.get('sslmode');
  if (mode !== null && !TLS_MODES.includes(mode))
    messages.push(`sslmode=${mode} is unknown: expected one of ${TLS_MODES.join(', ')}`);
  return messages.map((message) => at(['journal', 'url'], message));
}

/** Whether API keys are looked up at the upstream. */
function findsKeysThere(settings: Settings): boolean {
  return identitySections(settings).some((one) => one.kind === 'api-keys' && one.url.startsWith('/'));
}

/** Ranges that are written as an address within them. */
function rangeWarnings(ranges: readonly string[], path: readonly string[], at: Locate): readonly Problem[] {
  return ranges.flatMap((range, index) => {
    const [address = '', bits] = range.split('/');
    if (bits === undefined) return [];
    const base = rangeBase(address, Number(bits));
    if (base === canonicalAddress(address)) return [];
    const message = `${range} is all of ${base}/${bits}: write that, or ${address} for one address`;
    return [at([...path, String(index)], message)];
  });
}
