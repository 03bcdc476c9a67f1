import type { Finding } from '../../reader/check.ts';
import type { Settings } from '../settings.ts';
import { isSymmetric } from './tokens.ts';

type IdentitySettings = Settings['identity'];

/**
 * Conflicts between settings of an `identity` section that are valid individually.
 *
 * @param section where the section is
 */
export function identityFindings(
  identity: IdentitySettings,
  section: readonly string[] = ['identity'],
): readonly Finding[] {
  return conflictsIn(identity).map(({ path, ...finding }) => ({ ...finding, path: [...section, ...path] }));
}

function conflictsIn(identity: IdentitySettings): readonly Finding[] {
  if (identity.kind === 'static') return [];
  if (identity.kind === 'api-keys') return digestFindings(identity);
  const findings = identity.kind === 'jwt' ? keyFindings(identity) : [];
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

function digestFindings({ url }: Extract<IdentitySettings, { kind: 'api-keys' }>): readonly Finding[] {
  if (url.includes('{digest}')) return [];
  const path = ['url'];
  return [{ path, message: 'must contain {digest}', hint: 'such as /internal/api-keys/{digest}' }];
}

function keyFindings({
  jwksUrl,
  keyFile,
  algorithms,
}: Extract<IdentitySettings, { kind: 'jwt' }>): Finding[] {
  const findings: Finding[] = [];
  if ((jwksUrl === undefined) === (keyFile === undefined)) {
    findings.push({
      path: [],
      message: 'set either jwksUrl or keyFile, not both',
    });
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
