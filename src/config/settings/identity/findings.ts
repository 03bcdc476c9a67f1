import type { Finding } from '../../reader/check.ts';
import type { Settings } from '../settings.ts';
import { isSymmetric } from './tokens.ts';

type IdentitySettings = Settings['identity'];

/** What does not fit together in the `identity` section, though each setting by itself is sound. */
export function identityFindings(identity: IdentitySettings): readonly Finding[] {
  if (identity.kind === 'static') return [];
  if (identity.kind === 'api-keys') return digestFindings(identity);
  const findings = identity.kind === 'jwt' ? keyFindings(identity) : [];
  const { directory } = identity;
  if (directory.kind === 'http' && !directory.url.includes('{account}')) {
    findings.push({
      path: ['identity', 'directory', 'url'],
      message: 'must say where the Account goes',
      hint: 'such as https://accounts.example.com/accounts/{account}',
    });
  }
  return findings;
}

function digestFindings({ url }: Extract<IdentitySettings, { kind: 'api-keys' }>): readonly Finding[] {
  if (url.includes('{digest}')) return [];
  const path = ['identity', 'url'];
  return [
    { path, message: 'must say where the digest of a key goes', hint: 'such as /internal/api-keys/{digest}' },
  ];
}

function keyFindings({
  jwksUrl,
  keyFile,
  algorithms,
}: Extract<IdentitySettings, { kind: 'jwt' }>): Finding[] {
  const findings: Finding[] = [];
  if ((jwksUrl === undefined) === (keyFile === undefined)) {
    findings.push({
      path: ['identity'],
      message: 'takes its keys from jwksUrl or keyFile: name exactly one of them',
    });
  }
  const symmetric = algorithms.filter(isSymmetric);
  if (symmetric.length === 0) return findings;
  const path = ['identity', 'algorithms'];
  if (symmetric.length < algorithms.length) {
    // A public key must never be taken for a shared secret.
    findings.push({ path, message: `${symmetric[0]} and public-key algorithms exclude one another` });
  }
  if (keyFile === undefined) {
    findings.push({ path, message: `${symmetric[0]} needs a secret`, hint: 'name its file with keyFile' });
  }
  return findings;
}
