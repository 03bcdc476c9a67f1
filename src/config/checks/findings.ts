import { BlockList } from 'node:net';
import { maskUrl } from '../reader/mask.ts';
import type { Finding } from '../reader/schema-check.ts';
import { isMapping } from '../reader/schema-node.ts';
import { isSymmetric } from '../settings/identity-settings.ts';
import { RANGE_FORM } from '../settings/section.ts';
import type { Settings } from '../settings/settings.ts';

/** Conflicts between settings of the ports and the upstreams that are valid individually. */
export function proxyFindings({ listen, admin, decisions, upstream }: Partial<Settings>): readonly Finding[] {
  return [
    ...portFindings({ listen, admin, decisions, 'decisions.envoy': envoyPort(decisions) }),
    ...decisionFindings(listen, decisions),
    ...routeFindings(upstream?.routes ?? []),
  ];
}

/** Ranges that have the form of one and are not addresses, even if their section has other problems. */
export function rangeFindings(settings: unknown): readonly Finding[] {
  return [
    ...rangesAt(settings, ['listen', 'trustedProxies']),
    ...rangesAt(settings, ['decisions', 'trusted']),
  ];
}

function rangesAt(settings: unknown, path: readonly [section: string, setting: string]): readonly Finding[] {
  const [section, setting] = path;
  const given = isMapping(settings) ? settings[section] : undefined;
  const ranges = isMapping(given) ? given[setting] : undefined;
  return (Array.isArray(ranges) ? ranges : []).flatMap((range: unknown, index) => {
    // The schema reports what has another form.
    if (typeof range !== 'string' || !RANGE.test(range) || isRange(range)) return [];
    const message = `must be an address or a CIDR range such as 10.0.0.0/8, is "${maskUrl(range)}"`;
    return [{ path: [...path, `${index}`], message }];
  });
}

const RANGE = new RegExp(RANGE_FORM);

function isRange(range: string): boolean {
  const [address = '', bits] = range.split('/');
  try {
    new BlockList().addSubnet(address, Number(bits ?? 0), address.includes(':') ? 'ipv6' : 'ipv4');
    return true;
  } catch {
    return false;
  }
}

interface PortSetting {
  readonly host: string;
  readonly port?: number | 'off';
}

/** Ports that only one of two sections can open. */
function portFindings(sections: Readonly<Record<string, PortSetting | undefined>>): readonly Finding[] {
  const seen: [string, PortSetting][] = [];
  const findings: Finding[] = [];
  for (const [name, port] of Object.entries(sections)) {
    if (!port?.port || port.port === 'off') continue;
    const [other] = seen.find(([, one]) => collide(one, port)) ?? [];
    if (other !== undefined) {
      findings.push({
        path: [...name.split('.'), 'port'],
        message: `is ${port.port}, which is also ${other}.port`,
      });
    }
    seen.push([name, port]);
  }
  return findings;
}

function envoyPort(decisions: Settings['decisions'] | undefined): PortSetting | undefined {
  const envoy = decisions?.envoy;
  return envoy && { host: envoy.host ?? decisions.host, port: envoy.port };
}

/** The longest path of a socket in bytes: `sockaddr_un` of Linux has 108, with a zero at the end. */
const MAX_SOCKET_PATH = 107;

/** Conflicts between the places where proxies ask, and where clients do not. */
function decisionFindings(
  listen: Settings['listen'] | undefined,
  decisions: Settings['decisions'] | undefined,
): readonly Finding[] {
  if (decisions === undefined) return [];
  const { port, socketPath, envoy, tls } = decisions;
  const findings: Finding[] = [];
  if (listen?.port === 'off' && port === undefined && socketPath === undefined && envoy === undefined) {
    const hint = 'set decisions.port, decisions.socketPath or decisions.envoy';
    findings.push({ path: ['listen', 'port'], message: 'is off, and Weir does not decide either', hint });
  }
  if (socketPath === undefined) return findings;
  const path = ['decisions', 'socketPath'];
  if (port !== undefined)
    findings.push({ path, message: `cannot be combined with decisions.port, which is ${port}` });
  if (tls !== undefined)
    findings.push({ path: ['decisions', 'tls'], message: 'cannot be combined with decisions.socketPath' });
  if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH)
    findings.push({ path, message: `must have ${MAX_SOCKET_PATH} bytes at most: ${socketPath}` });
  return findings;
}

const EVERY_ADDRESS = new Set(['0.0.0.0', '::']);

function collide(one: PortSetting, other: PortSetting): boolean {
  const isShared = one.host === other.host || EVERY_ADDRESS.has(one.host) || EVERY_ADDRESS.has(other.host);
  return one.port === other.port && isShared;
}

function routeFindings(routes: Settings['upstream']['routes']): readonly Finding[] {
  const seen = new Set<string>();
  return routes.flatMap(({ prefix }, index) => {
    const isTwice = seen.has(prefix);
    seen.add(prefix);
    const path = ['upstream', 'routes', `${index}`, 'prefix'];
    return isTwice ? [{ path, message: `${prefix} is listed twice` }] : [];
  });
}

/**
 * Conflicts between settings of an `identity` section that are valid individually.
 *
 * @param section where the section is
 */
export function identityFindings(
  identity: Settings['identity'],
  section: readonly string[] = ['identity'],
): readonly Finding[] {
  return conflictsIn(identity).map(({ path, ...finding }) => ({ ...finding, path: [...section, ...path] }));
}

function conflictsIn(identity: Settings['identity']): readonly Finding[] {
  if (identity.kind === 'api-keys') return digestFindings(identity);
  const findings = identity.kind === 'jwt' ? keyFindings(identity) : [];
  if (!('directory' in identity)) return findings;
  const { directory } = identity;
  if (directory.kind === 'http' && !directory.url.includes('{account}')) {
    findings.push({
      path: ['directory', 'url'],
      message: 'must contain {account}',
      hint: 'such as https://accounts.example.com/accounts/{account}',
    });
  }
  return findings;
}

function digestFindings({ url }: Extract<Settings['identity'], { kind: 'api-keys' }>): readonly Finding[] {
  if (url.includes('{digest}')) return [];
  const path = ['url'];
  return [{ path, message: 'must contain {digest}', hint: 'such as /internal/api-keys/{digest}' }];
}

function keyFindings({
  jwksUrl,
  keyFile,
  algorithms,
}: Extract<Settings['identity'], { kind: 'jwt' }>): Finding[] {
  const findings: Finding[] = [];
  if ((jwksUrl === undefined) === (keyFile === undefined)) {
    const message =
      keyFile === undefined ? 'has neither jwksUrl nor keyFile' : 'has both jwksUrl and keyFile';
    findings.push({ path: [], message, hint: 'set one of them' });
  }
  const symmetric = algorithms.filter(isSymmetric);
  if (symmetric.length === 0) return findings;
  const path = ['algorithms'];
  if (symmetric.length < algorithms.length) {
    // Prevents an attacker from using a public key as the shared secret.
    findings.push({ path, message: `${symmetric[0]} cannot be combined with public-key algorithms` });
  }
  if (keyFile === undefined) {
    findings.push({ path, message: `${symmetric[0]} needs a secret`, hint: 'set keyFile to its file' });
  }
  return findings;
}
