import { hash, timingSafeEqual } from 'node:crypto';
import { type PortTokenSettings, readTokenFile } from '../config/settings/port-token.ts';

const BEARER = /^Bearer +(\S+)$/i;

/**
 * What an Authorization header is worth at a port. `unset`: the port has no token. `unreadable`: its file cannot be read, or has
 * another form.
 *
 * @param section of weir.yaml, such as `admin`
 */
export function judgeToken(
  authorization: string | undefined,
  settings: PortTokenSettings,
  section: string,
): 'unset' | 'unreadable' | 'missing' | 'wrong' | 'right' {
  if (settings.token === undefined && settings.tokenFile === undefined) return 'unset';
  const expected = expectedToken(settings, section);
  if (expected === undefined) return 'unreadable';
  const given = BEARER.exec(authorization ?? '')?.[1];
  if (given === undefined) return 'missing';
  return isSame(given, expected) ? 'right' : 'wrong';
}

function expectedToken({ token, tokenFile }: PortTokenSettings, section: string): string | undefined {
  if (token !== undefined) return token;
  if (tokenFile === undefined) return undefined;
  try {
    return readTokenFile(tokenFile, `${section}.tokenFile`);
  } catch {
    return undefined;
  }
}

/** Compares digests in constant time, so that a wrong token's length is not revealed either. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(given), digest(expected));
}
