import ipaddr from 'ipaddr.js';
import { Type } from 'typebox';
import { fileError } from '../problem.ts';
import { readText } from '../reader/read-text.ts';
import type { Finding } from '../reader/schema-check.ts';
import { filePath, flag, httpUrl, section } from './section.ts';
import type { Settings } from './settings.ts';

/** Standard Webhooks: 24 bytes or more in base64. */
const SECRET_PATTERN = '^(whsec_)?[A-Za-z0-9+/]{32,}={0,2}$';
const SECRET_FORMAT = 'whsec_ and 24 bytes or more in base64';

/** Who is notified that a limit is nearly or wholly used. */
export const notificationsSchema = section(
  'Reports limits of a minute or longer when 80 % or all of their points are used. See docs/customers.md.',
  {
    log: flag('Write a line to the log.', false),
    url: Type.Optional(httpUrl('Webhook that is called.')),
    secret: Type.Optional(
      Type.String({
        description: 'Secret that signs the calls. Prefer setting it by its variable.',
        pattern: SECRET_PATTERN,
        secret: true,
        expects: SECRET_FORMAT,
      }),
    ),
    secretFile: Type.Optional(
      filePath(
        'File with that secret. Calls are signed with the secret of each line, so that it can be replaced.',
      ),
    ),
    allowPrivate: flag('Also call private addresses, and over http://.', false),
  },
);

/** Whether an IP address is of this machine, a private network, or the metadata service of a cloud. */
export function isPrivateAddress(address: string): boolean {
  return ipaddr.process(address).range() !== 'unicast';
}

/** Settings that are valid individually, and of no use together. */
export function notificationFindings({ notifications }: Partial<Settings>): readonly Finding[] {
  const { url, secret, secretFile, allowPrivate } = notifications ?? {};
  if (url === undefined) return [];
  const findings: Finding[] = [];
  const at = (setting: string, message: string, hint: string) =>
    findings.push({ path: ['notifications', setting], message, hint });
  if (secret === undefined && secretFile === undefined)
    at('url', 'needs a secret that signs the calls', 'set notifications.secretFile');
  if (!allowPrivate && !url.startsWith('https:'))
    at('url', 'must be an https:// URL', 'set notifications.allowPrivate for a receiver in your own network');
  return findings;
}

/**
 * The secrets in a file, one a line.
 *
 * @throws ConfigError if it cannot be read, or has none or another form
 */
export function readSecretFile(file: string): readonly string[] {
  const text = readText(file, 'the setting notifications.secretFile refers to it');
  const secrets = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const pattern = new RegExp(SECRET_PATTERN);
  if (secrets.length > 0 && secrets.every((secret) => pattern.test(secret))) return secrets;
  throw fileError(file, `must contain ${SECRET_FORMAT}`);
}
