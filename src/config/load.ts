import { existsSync } from 'node:fs';
import type { JSONWebKeySet } from 'jose';
import { identityFindings, proxyFindings, rangeFindings } from './checks/findings.ts';
import { CertificateFiles } from './files/certificates.ts';
import { DescriptorFiles } from './files/descriptors/descriptor-files.ts';
import type { Identities } from './files/identities/parse-identities.ts';
import { parseIdentitiesApart } from './files/identities/parse-process.ts';
import { parseKeyFile } from './files/key-file.ts';
import { LimitsFiles } from './files/limits/limits-files.ts';
import { ConfigError, type Problem } from './problem.ts';
import type { Environment } from './reader/environment.ts';
import { type FileSource, ParsedFile } from './reader/file-source.ts';
import { examine, resolveFiles } from './reader/parse-file.ts';
import { readText } from './reader/read-text.ts';
import type { Finding } from './reader/schema-check.ts';
import { isMapping } from './reader/schema-node.ts';
import { credentialFindings } from './settings/credentials.ts';
import { notificationFindings } from './settings/notifications-settings.ts';
import { type Settings, settingsSchema } from './settings/settings.ts';

/** The valid sections of weir.yaml, with environment variables applied. */
interface SettingsReading {
  /** The sections without problems. */
  readonly valid: Partial<Settings>;
  readonly problems: readonly Problem[];
  /** Adds file and line, or the environment variable, to a finding of a later check. */
  place(finding: Finding): Problem;
}

/** Reads weir.yaml. Throws a ConfigError only if the file cannot be read or is not YAML. */
export function readSettings(path: string, env: Environment): SettingsReading {
  const hint = `${existsSync(path) ? '' : 'weir init writes one; '}--config names another file`;
  const text = readText(path, hint);
  const { value, place, problems, invalid } = examine(settingsSchema, text, path, env);
  const sections = isMapping(value) ? Object.entries(value).filter(([name]) => !invalid.has(name)) : [];
  const valid = withDecisionsPort(resolveFiles(settingsSchema, Object.fromEntries(sections), path));
  const ofIdentity = valid.identity === undefined ? [] : identityFindings(valid.identity);
  const ofCredentials = findingsOf(valid.credentials ?? []);
  const ofOthers = [...rangeFindings(value), ...proxyFindings(valid), ...notificationFindings(valid)];
  const { identity, credentials, ...others } = valid;
  return {
    place,
    valid: {
      ...others,
      ...(identity && ofIdentity.length === 0 && { identity }),
      ...(credentials && ofCredentials.length === 0 && { credentials }),
    },
    problems: [...problems, ...[...ofIdentity, ...ofCredentials, ...ofOthers].map(place)],
  };
}

/** `decisions.listen` is another place for `decisions.host` and `decisions.port`: all else reads those. */
function withDecisionsPort(settings: Partial<Settings>): Partial<Settings> {
  const { decisions } = settings;
  return { ...settings, ...(decisions && { decisions: { ...decisions, ...decisions.listen } }) };
}

function findingsOf(credentials: Settings['credentials']): readonly Finding[] {
  const ofProviders = credentials.flatMap(({ identity }, index) =>
    identity === undefined ? [] : identityFindings(identity, ['credentials', `${index}`, 'identity']),
  );
  return [...credentialFindings(credentials), ...ofProviders];
}

/** Reads weir.yaml. Throws a ConfigError with every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const reading = readSettings(path, env);
  if (isComplete(reading)) return reading.valid;
  throw new ConfigError(reading.problems);
}

export function isComplete(
  reading: SettingsReading,
): reading is SettingsReading & { readonly valid: Settings } {
  return reading.problems.length === 0;
}

/** Opens the files of the given sections that are reloaded while running, except the files of operations. */
export function configurationFiles(
  { limits, identity, credentials = [], listen, admin, decisions }: Partial<Settings>,
  source: FileSource,
) {
  return {
    ...(limits && { limits: new LimitsFiles(limits.file, limits.overrides, source) }),
    ...identityFiles(identity, 'identity', source),
    /** Of each of the `credentials`; undefined for those without an `identity` of their own. */
    credentials: credentials.map(
      ({ identity: own }, index) => own && identityFiles(own, `credentials.${index}.identity`, source),
    ),
    /** The rules of Envoy's rate limit service; undefined without one. */
    descriptors: decisions?.envoy && new DescriptorFiles(decisions.envoy.files, source),
    /** Of each port; undefined if it serves HTTP. */
    certificates: {
      listen: listen?.tls && new CertificateFiles(listen.tls, 'listen.tls'),
      admin: admin?.tls && new CertificateFiles(admin.tls, 'admin.tls'),
      decisions: decisions?.tls && new CertificateFiles(decisions.tls, 'decisions.tls'),
    },
  };
}

/** Each is undefined if what it has does not come from a file. */
function identityFiles(identity: Settings['identity'] | undefined, section: string, source: FileSource) {
  return {
    identities: identity && identitiesFile(identity, source, section),
    keys: identity && keyFile(identity, section),
  };
}

function identitiesFile(
  identity: Settings['identity'],
  source: FileSource,
  section: string,
): ParsedFile<Identities> | undefined {
  const open = (file: string, setting: string) =>
    new ParsedFile(file, parseIdentitiesApart, `the setting ${setting} refers to it`, source);
  if ('file' in identity) return open(identity.file, `${section}.file`);
  if (!('directory' in identity) || identity.directory.kind !== 'file') return undefined;
  return open(identity.directory.file, `${section}.directory.file`);
}

function keyFile(identity: Settings['identity'], section: string): ParsedFile<JSONWebKeySet> | undefined {
  if (identity.kind !== 'jwt' || identity.keyFile === undefined) return undefined;
  const { algorithms } = identity;
  const parseKeys = (text: string, file: string) => parseKeyFile(text, file, algorithms);
  return new ParsedFile(identity.keyFile, parseKeys, `the setting ${section}.keyFile refers to it`);
}
