import { createSecureContext } from 'node:tls';
import { isKeyPair, type TlsFiles } from '../../domain/tls-files.ts';
import { ConfigError, type Problem } from '../problem.ts';
import type { Finding } from '../reader/check.ts';
import { readText } from '../reader/read-text.ts';
import type { Settings } from '../settings/settings.ts';

const PAIR_HINT = 'keyFile must be the private key of the certificate in certFile; set both or neither';

/**
 * Checks what the schema of `upstream` and `store` cannot: certificates.
 *
 * @param place adds file and line to a finding
 * @throws ConfigError with every problem
 */
export function checkProxySettings(
  { upstream, store }: Partial<Settings>,
  place: (finding: Finding) => Problem,
): void {
  const problems: Problem[] = [];
  problems.push(...tlsProblems(upstream?.tls, ['upstream', 'tls'], place));
  if (store !== undefined && 'tls' in store)
    problems.push(...tlsProblems(store.tls, ['store', 'tls'], place));
  for (const [index, { tls }] of upstream?.routes.entries() ?? []) {
    problems.push(...tlsProblems(tls, ['upstream', 'routes', `${index}`, 'tls'], place));
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function tlsProblems(
  tls: TlsFiles | undefined,
  path: readonly string[],
  place: (finding: Finding) => Problem,
): readonly Problem[] {
  if (tls === undefined) return [];
  const read = (file: string | undefined, name: string) =>
    file === undefined ? undefined : readText(file, `the setting ${path.join('.')}.${name} refers to it`);
  try {
    const ca = read(tls.caFile, 'caFile');
    const cert = read(tls.certFile, 'certFile');
    const key = read(tls.keyFile, 'keyFile');
    createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    if (cert === undefined && key === undefined) return [];
    if (cert !== undefined && key !== undefined && isKeyPair(cert, key)) return [];
    return [place({ path, message: 'has no pair of certFile and keyFile', hint: PAIR_HINT })];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    const hint = 'caFile, certFile and keyFile must be PEM files, and certFile and keyFile a pair';
    return [place({ path, message: 'cannot be used for TLS', hint })];
  }
}
