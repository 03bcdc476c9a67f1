import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Allocations, TRACE_ALLOCATIONS } from '../lab/heap.ts';
import { type Contestant, type Scene, upstreamUrl } from './contestant.ts';
import { startOnNode } from './node-program.ts';

export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
export const OPENAPI = fileURLToPath(new URL('../../platform/openapi.yaml', import.meta.url));

/** Accounts that share an Organization, and so its bucket. */
export const ACCOUNTS_PER_ORGANIZATION = 10;

/** The highest cost in the price list: Weir refuses limits below it. The load only reads. */
const HIGHEST_COST = 10;

interface WeirOptions {
  readonly accessLog?: boolean;
  /** Further limits, as in the limits file. */
  readonly limits?: Readonly<Record<string, object>> | undefined;
  /** Further settings, by section of weir.yaml. */
  readonly settings?: Readonly<Record<string, object>> | undefined;
  /** Learns how much the process allocates. */
  readonly allocations?: Allocations | undefined;
}

/** Weir as users run it: two buckets a request, the platform's own price list, the access log unless it is turned off. */
export function weir(kind: 'memory' | 'redis', options: WeirOptions = {}): Contestant {
  const { accessLog = true, allocations } = options;
  return {
    name: `Weir (${kind}${accessLog ? '' : ', no access log'})`,
    limiter: `Account and Organization, sliding window, in ${kind === 'redis' ? 'Redis' : 'memory'}`,
    hasLimiter: true,
    find: () => ({ version: `Node ${process.version}` }),
    start(scene) {
      const trace = allocations === undefined ? [] : TRACE_ALLOCATIONS;
      const argsOf = (port: number) => [
        ...trace,
        ...[MAIN, 'start', '-c', writeConfiguration(scene, kind, port, options)],
      ];
      return startOnNode(scene, argsOf, (text) => allocations?.take(text));
    },
  };
}

/** Writes Weir's files. @returns the path of weir.yaml */
function writeConfiguration(
  scene: Scene,
  kind: 'memory' | 'redis',
  port: number,
  { accessLog = true, limits = {}, settings = {} }: WeirOptions,
): string {
  const { folder, limit, accounts, organizationLimit = limit * ACCOUNTS_PER_ORGANIZATION } = scene;
  const url = `redis://127.0.0.1:${scene.redisPort}`;
  const own: Record<string, object> = {
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstreamUrl(scene) },
    store: kind === 'memory' ? { kind } : { kind, url },
    operations: { openapi: OPENAPI },
    log: { access: accessLog, level: 'info' },
    shutdown: { drainDelaySeconds: 0 },
  };
  const further = Object.entries(settings).map(([name, section]) => [name, { ...own[name], ...section }]);
  const files = {
    'weir.yaml': { ...own, ...Object.fromEntries(further) },
    'limits.yaml': { windowSeconds: 1, defaults: limitsOf(limit, organizationLimit), limits },
    'identities.yaml': identities(accounts),
  };
  // JSON is YAML, and is read faster.
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), JSON.stringify(content));
  }
  return join(folder, 'weir.yaml');
}

/** The default limits: points per second of each Account and each Organization. */
export function limitsOf(limit: number, ofOrganization: number): Record<string, number> {
  return {
    'account-read': limit,
    'account-write': Math.max(limit, HIGHEST_COST),
    'person-read': limit,
    'person-write': Math.max(limit, HIGHEST_COST),
    'organization-read': ofOrganization,
    'organization-write': Math.max(ofOrganization, HIGHEST_COST),
  };
}

/** The identities file of Accounts `acct_1` to `acct_N`, in Organizations of ten. */
export function identities(count: number): object {
  const tokens: Record<string, string> = {};
  const principals: Record<string, object> = {};
  const accounts: Record<string, object> = {};
  for (let account = 1; account <= count; account++) {
    tokens[`token-${account}`] = `svc_${account}`;
    principals[`svc_${account}`] = { type: 'ServiceAccount', account: `acct_${account}` };
    accounts[`acct_${account}`] = { organization: `org_${Math.ceil(account / ACCOUNTS_PER_ORGANIZATION)}` };
  }
  return { tokens, principals, accounts };
}
