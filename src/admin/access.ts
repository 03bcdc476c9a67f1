import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { readText } from '../config/reader/read-text.ts';
import type { Settings } from '../config/settings/settings.ts';

type AdminSettings = Settings['admin'];

/** Why a request may not use the guarded part of the admin port. */
interface Denial {
  readonly status: 401 | 403 | 503;
  readonly error: string;
}

/** Names by which a browser or a command on this machine reaches a loopback address. */
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;
const LOOPBACK_ADDRESS = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

const BEARER = /^Bearer +(\S+)$/i;

/**
 * Guards everything on the admin port but metrics and health: as a hook, it refuses a request without the token of
 * `admin.token` or `admin.tokenFile`. Without either, only a gateway that listens on a loopback address answers, and only
 * to a loopback name: another site's page cannot reach it through a name of its own (DNS rebinding).
 */
export function adminGuard(settings: AdminSettings) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    reply.header('Cache-Control', 'no-store').header('X-Content-Type-Options', 'nosniff');
    const denial = denialOf(settings, request) ?? foreignPage(request);
    if (denial === undefined) return undefined;
    if (denial.status === 401) reply.header('WWW-Authenticate', 'Bearer');
    return reply.code(denial.status).send({ error: denial.error });
  };
}

function denialOf(settings: AdminSettings, { headers }: FastifyRequest): Denial | undefined {
  if (settings.token === undefined && settings.tokenFile === undefined) {
    if (!LOOPBACK_ADDRESS.test(settings.host)) {
      return { status: 403, error: 'Set admin.tokenFile or WEIR_ADMIN_TOKEN to use this.' };
    }
    if (LOOPBACK_HOST.test(headers.host ?? '')) return undefined;
    return { status: 403, error: 'Without an admin token, use a loopback name such as 127.0.0.1.' };
  }
  const expected = expectedToken(settings);
  if (expected === undefined) {
    return { status: 503, error: 'The file of admin.tokenFile cannot be read, or has no token.' };
  }
  const given = BEARER.exec(headers.authorization ?? '')?.[1] ?? '';
  if (isSame(given, expected)) return undefined;
  return { status: 401, error: 'Send the admin token as Authorization: Bearer.' };
}

/** Another site's page may not act in the name of somebody whose browser reaches this port (CSRF). */
function foreignPage({ headers }: FastifyRequest): Denial | undefined {
  const { origin, host } = headers;
  if (origin === undefined || origin === `http://${host}` || origin === `https://${host}`) return undefined;
  return { status: 403, error: 'The pages of other sites may not use the admin port.' };
}

function expectedToken({ token, tokenFile }: AdminSettings): string | undefined {
  if (token !== undefined) return token;
  if (tokenFile === undefined) return undefined;
  try {
    return readText(tokenFile, '').trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Compares digests in constant time, so that a wrong token's length is not revealed either. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(given), digest(expected));
}
