import { BlockList, isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { ConfigError, type Problem } from '../problem.ts';
import { maskUrl } from '../reader/mask.ts';
import { readText } from '../reader/read-text.ts';
import type { Settings } from './settings.ts';

type Tls = Pick<NonNullable<Settings['upstream']['tls']>, 'caFile' | 'certFile' | 'keyFile'>;

/**
 * Checks what the schema of `decisions`, `listen`, `upstream` and `store` cannot: address ranges and certificates.
 *
 * @param source the settings file, as the user named it
 * @throws ConfigError with every problem
 */
export function checkProxySettings(
  { decisions, listen, upstream, store }: Partial<Settings>,
  source: string,
): void {
  const problems: Problem[] = [];
  problems.push(...rangeProblems(listen?.trustedProxies, 'listen.trustedProxies', source));
  problems.push(...rangeProblems(decisions?.trusted, 'decisions.trusted', source));
  problems.push(...tlsProblems(upstream?.tls, 'upstream.tls', source));
  if (store !== undefined && store.kind !== 'memory')
    problems.push(...tlsProblems(store.tls, 'store.tls', source));
  for (const [index, { tls }] of upstream?.routes.entries() ?? []) {
    problems.push(...tlsProblems(tls, `upstream.routes.${index}.tls`, source));
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function rangeProblems(ranges: readonly string[] = [], path: string, source: string): readonly Problem[] {
  return ranges.flatMap((range, index) => {
    if (isRange(range)) return [];
    const message = `must be an address or a CIDR range such as 10.0.0.0/8, is "${maskUrl(range)}"`;
    return [{ source, path: `${path}.${index}`, message }];
  });
}

function isRange(range: string): boolean {
  const [address = '', bits] = range.split('/');
  const version = isIP(address);
  try {
    if (version !== 0) new BlockList().addSubnet(address, Number(bits ?? 0), version === 6 ? 'ipv6' : 'ipv4');
    return version !== 0;
  } catch {
    return false;
  }
}

function tlsProblems(tls: Tls | undefined, path: string, source: string): readonly Problem[] {
  if (tls === undefined) return [];
  const read = (file: string | undefined, name: string) =>
    file === undefined ? undefined : readText(file, `the setting ${path}.${name} refers to it`);
  try {
    const ca = read(tls.caFile, 'caFile');
    const cert = read(tls.certFile, 'certFile');
    const key = read(tls.keyFile, 'keyFile');
    createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    const hint = 'caFile, certFile and keyFile must be PEM files, and certFile and keyFile a pair';
    return [{ source, path, message: 'cannot be used for TLS', hint }];
  }
}
